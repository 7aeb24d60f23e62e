// The lineage view as one self-contained module for anywidget: no import, no address, nothing fetched.
import { build } from 'esbuild';
import { statSync } from 'node:fs';

const LIMIT = 60_000;
const outfile = '../keel_notebook/labextension/view/lineage.js';

await build({
  entryPoints: ['src/view/widget.ts'],
  bundle: true,
  format: 'esm',
  minify: true,
  target: 'es2020',
  legalComments: 'none',
  outfile
});
await build({ entryPoints: ['style/view.css'], bundle: true, minify: true, outfile: outfile.replace('.js', '.css') });

const size = statSync(outfile).size;
if (size >= LIMIT) {
  throw new Error(`the view is ${size} bytes: it goes into every saved notebook and must stay below ${LIMIT}`);
}
