/** Flows as the kernel tells them. */

import { Flow, State, Step } from '../src/view/model';

export const NOW = 1_764_410_000;

export function step(name: string, state: State = 'recorded', more: Partial<Step> = {}): Step {
  return {
    name,
    state,
    decision: 'executed',
    attempts: 1,
    recorded_at: NOW - 600,
    took_s: 2.5,
    replay_s: null,
    bytes: 1200,
    differs: [],
    why: '',
    not_stored: [],
    reads: [],
    run: 1,
    ...more
  };
}

export function flow(...steps: Step[]): Flow {
  return {
    flow: 'f1',
    status: 'running',
    run: 2,
    holder: null,
    saved_s: 0,
    notebook: 'a.ipynb',
    now: NOW,
    steps,
    notes: [],
    untrusted: 0,
    died: null
  };
}
