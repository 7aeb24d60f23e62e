/** What the view asks of whoever shows it: the panel answers over the comm, the widget over its model. */

import { Details, StorageAnswer, TimelineAnswer, WaitingAnswer } from './model';

/** What a person can do with a step. `replay` and `rerun` run cells, so only a front end with the notebook offers them. */
export type Action = 'replay' | 'rerun' | 'accept' | 'forget' | 'revive' | 'branch';

export interface Source {
  details(step: string): Promise<Details>;
  timeline(most: number): Promise<TimelineAnswer>;
  storage(): Promise<StorageAnswer>;
  waiting(): Promise<WaitingAnswer>;
  /** Actions that can be carried out here and now. */
  readonly can: ReadonlySet<Action>;
  /** Do it, and say in one sentence what came of it. */
  act(action: Action, step: string): Promise<string>;
  /** Go on in another lane; missing where that cannot be done from here. */
  useLane?(lane: string): Promise<string>;
  /** Back to the cell of a step (or to wherever the focus came from). */
  leave(step: string | null): void;
}
