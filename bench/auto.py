"""Auto mode on a notebook of forty cells as people write them: load, clean, look, group, plot, fit, compare.

What auto mode adds is measured against the same notebook without keel, in kernels that take turns. Three passes differ:
the first one knows no cell; in the second, a fresh kernel, the slow cells replay and the quick ones run; a third
executes the slow ones anew (`%keel rerun --all`) with every quick cell known. On a machine that does other things as
well the processor time of the kernel, in brackets, says more than the clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.kernels import TimedKernel
from bench.report import Figure

_NOTEBOOK = """\
import numpy as np
import pandas as pd
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
# ---
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_score, train_test_split
# ---
SEED = 7
TARGET = "price"
pd.set_option("display.width", 120)
# ---
def rmse(truth, guess):
    return float(np.sqrt(np.mean((truth - guess) ** 2)))

def show(frame, rows=5):
    return frame.head(rows)
# ---
raw = pd.read_csv("sales.csv", parse_dates=["day"])
# ---
raw.shape
# ---
show(raw)
# ---
raw.dtypes
# ---
raw.describe()
# ---
raw.isna().sum()
# ---
clean = raw.dropna(subset=["area", "rooms"]).copy()
# ---
clean["age"] = clean["age"].fillna(clean["age"].median())
# ---
clean = clean[clean["area"].between(20, 400)]
# ---
clean["month"] = clean["day"].dt.month
clean["weekday"] = clean["day"].dt.dayofweek
# ---
clean["per_room"] = clean["area"] / clean["rooms"]
# ---
print(len(raw) - len(clean), "rows dropped")
# ---
by_town = clean.groupby("town")["price"].agg(["mean", "median", "count"])
by_town.sort_values("mean").head(10)
# ---
by_month = clean.groupby("month")["price"].mean()
by_month
# ---
fig, ax = plt.subplots()
by_month.plot(ax=ax)
ax.set_title("price by month")
plt.close(fig)
# ---
correlations = clean[["price", "area", "rooms", "age", "per_room"]].corr()
correlations.round(2)
# ---
towns = pd.get_dummies(clean["town"], prefix="town", dtype=float)
# ---
features = pd.concat([clean[["area", "rooms", "age", "month", "weekday", "per_room"]], towns], axis=1)
features.shape
# ---
target = clean[TARGET].to_numpy()
# ---
train_x, test_x, train_y, test_y = train_test_split(features, target, test_size=0.25, random_state=SEED)
# ---
baseline = np.full_like(test_y, train_y.mean())
rmse(test_y, baseline)
# ---
ridge = Ridge(alpha=1.0).fit(train_x, train_y)
# ---
ridge_guess = ridge.predict(test_x)
rmse(test_y, ridge_guess), r2_score(test_y, ridge_guess)
# ---
weights = pd.Series(ridge.coef_, index=features.columns)
weights.abs().sort_values(ascending=False).head()
# ---
alphas = [0.1, 1.0, 10.0]
scores = {alpha: cross_val_score(Ridge(alpha=alpha), train_x, train_y, cv=3).mean() for alpha in alphas}
scores
# ---
best_alpha = max(scores, key=scores.get)
# ---
forest = RandomForestRegressor(max_depth=12, random_state=SEED).fit(train_x, train_y)
# ---
forest_guess = forest.predict(test_x)
rmse(test_y, forest_guess)
# ---
importances = pd.Series(forest.feature_importances_, index=features.columns).sort_values(ascending=False)
importances.head(8)
# ---
folds = KFold(3, shuffle=True, random_state=SEED)
forest_scores = []
for inside, outside in folds.split(train_x):
    one = RandomForestRegressor(n_estimators=20, max_depth=12, random_state=SEED)
    one.fit(train_x.iloc[inside], train_y[inside])
    forest_scores.append(mean_absolute_error(train_y[outside], one.predict(train_x.iloc[outside])))
# ---
np.mean(forest_scores), np.std(forest_scores)
# ---
errors = pd.DataFrame({"truth": test_y, "ridge": ridge_guess, "forest": forest_guess})
errors["worse"] = (errors["ridge"] - errors["truth"]).abs() < (errors["forest"] - errors["truth"]).abs()
# ---
errors["worse"].mean()
# ---
fig, ax = plt.subplots()
ax.scatter(errors["truth"][:500], errors["forest"][:500], s=4)
plt.close(fig)
# ---
summary = pd.DataFrame({"model": ["mean", "ridge", "forest"],
                        "rmse": [rmse(test_y, baseline), rmse(test_y, ridge_guess), rmse(test_y, forest_guess)]})
summary
# ---
print(summary.to_string(index=False))
"""
CELLS = _NOTEBOOK.split("\n# ---\n")

_DATA = """
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
n = 120_000
frame = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
                      "town": rng.choice([f"town{i}" for i in range(12)], n), "area": rng.normal(90, 30, n).round(1),
                      "rooms": rng.integers(1, 7, n).astype(float), "age": rng.integers(0, 120, n).astype(float)})
frame["price"] = 900 * frame["area"] + 4000 * frame["rooms"] - 120 * frame["age"] + rng.normal(0, 9000, n)
frame.loc[rng.choice(n, 2000, replace=False), "age"] = np.nan
frame.loc[rng.choice(n, 300, replace=False), "area"] = np.nan
frame.to_csv("sales.csv", index=False)
"""
_ON = "%load_ext keel_notebook\n%keel auto on"
ROUNDS = 3


def overhead_of_auto(folder: Path) -> Iterator[Figure]:
    """What auto mode adds to a notebook of forty cells, as a part of its wall time."""
    maker = TimedKernel(folder)
    maker.run(_DATA)
    maker.kill()
    plain, first, replayed, known = [], [], [], []
    for at in range(ROUNDS):
        plain.append(_pass(folder, []))
        place = folder / f"auto{at}"
        place.mkdir()
        (place / "sales.csv").symlink_to(folder / "sales.csv")
        first.append(_pass(place, [_ON]))
        replayed.append(_pass(place, [_ON]))
        known.append(_pass(place, [_ON, "%keel rerun --all"]))
    floor, floor_cpu = (statistics.median(part) for part in zip(*plain, strict=True))
    against = f"the same {len(CELLS)} cells without keel ({floor:.1f} s)"

    def row(what: str, took: list[tuple[float, float]], bound: float | None) -> Figure:
        wall, cpu = (statistics.median(part) for part in zip(*took, strict=True))
        detail = f"processor: {100 * (cpu / floor_cpu - 1):.1f} % more"
        return Figure(f"auto mode, {what}", 100 * (wall / floor - 1), "% more", against, bound, detail)

    yield row("cells not known yet", first, None)
    yield row("every slow cell executed again", known, 3)
    yield row("slow cells replayed", replayed, None)


def _pass(folder: Path, before: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of the kernel's processor time."""
    kernel = TimedKernel(folder)
    try:
        for cell in before:
            kernel.run(cell)
        began = kernel.cpu_s()
        return sum(kernel.run(cell)[0] for cell in CELLS), kernel.cpu_s() - began
    finally:
        kernel.kill()
