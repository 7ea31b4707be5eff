/** What the server answers: the shapes of `answers/*.py`. */

export type Kind = "run" | "evaluation" | "scored" | "tasks" | "log";

export interface Source {
  key: string;
  name: string;
  kind: Kind;
  path: string;
  rows: number;
  reading: boolean;
  error: string;
  components: string[];
  stamp: string;
  live: boolean;
  exported?: number;
  part?: number;
}

export interface State {
  sources: Source[];
  exported?: boolean;
}

export interface Row {
  n: number;
  id: string;
  task: string;
  step: number | null;
  group: string | null;
  sample: number | null;
  depth: number | null;
  structure: string | null;
  failure: string | null;
  stage: string | null;
  total: number | null;
  advantage: number | null;
  answered: boolean | null;
  masked: boolean | null;
  truncated: boolean | null;
  calls: number | null;
  failed: number | null;
  tools: string[];
  branch: string | null;
  query: string;
  scores: Record<string, number>;
}

export interface Evidence {
  code?: string;
  reason?: string;
  call?: number;
  path?: string;
  expected?: string;
  found?: string;
}

export interface Score {
  name: string;
  value: number | null;
  low: number | null;
  high: number | null;
  weight: number | null;
  closed: boolean;
  evidence: Evidence[];
}

export type Mark = [start: number, end: number, component: string, evidence: number];

export interface Said {
  role: string;
  text: string;
  loss: boolean | null;
  calls: number[];
  marks: Mark[];
  name?: string;
  cut?: number;
  asked?: { id: string; name: string; arguments: string }[];
}

export interface Call {
  turn?: number;
  call?: number;
  tool?: string;
  arguments?: unknown;
  kind?: string;
  value?: unknown;
  size?: number;
  digest?: string;
  code?: string;
  message?: string;
  changed?: boolean;
  by?: string;
  notices?: string[];
  /** What it changed in the world, once the row was executed again; `null` where the session cannot say. */
  changes?: Changes | null;
}

/** By table: rows that were added, removed and changed; JSON of any kind where the world is no tables. */
export type Changes = Record<string, unknown>;

export interface MadeAgain {
  calls: Call[];
  differences: string[];
  masked: string | null;
}

export interface Document {
  conversation: Said[];
  calls: Call[];
  scores: Score[];
  expected: unknown;
  found: unknown;
  at: unknown;
  has_tokens: boolean;
  masked: string | null;
  plan?: unknown;
  goal?: unknown;
  steps?: unknown;
  more: Record<string, unknown>;
}

export interface Rollout extends Row {
  document: Document;
}

export interface Page {
  total: number;
  offset: number;
  rows: Row[];
}

export interface GroupRow {
  name: string | number | null;
  count: number;
  mean: number | null;
  low: number | null;
  high: number | null;
  spread: number | null;
  answered: number | null;
  first: number;
}

export interface Groups {
  total: number;
  offset: number;
  by: string;
  rows: GroupRow[];
}

export interface Bars {
  low: number;
  high: number;
  bars: number[];
}

export interface Facets {
  facets: Record<string, { value: string | number; count: number; mean: number | null }[]>;
  totals: Bars | null;
  steps: [number | null, number | null];
}

export interface Samples {
  name: string;
  rows: (Row & { document: Document | null })[];
  mean: number | null;
  deviation: number | null;
}

export interface Cell {
  accuracy: number | null;
  low: number | null;
  high: number | null;
  n: number | null;
}

export interface Curves {
  steps: number[];
  figures: Record<string, (number | null)[]>;
  seconds: Record<string, (number | null)[]>;
  evaluations: { name: string; step: number | null; overall: number | null; by_depth: Record<string, Cell> }[];
  recipe: string | null;
  seed: number | null;
}

export interface Interval {
  n: number;
  mean: number | null;
  low: number | null;
  high: number | null;
}

export interface Compared {
  of: "answered" | "total";
  sides: { mean: number | null; rows: number; answered: number | null; totals: Bars | null }[];
  tasks: number;
  gained: number;
  lost: number;
  difference: Interval;
  flips: { task: string; query: string; first: number; second: number; rows: [number, number] }[];
  evaluations: Record<string, unknown> | null;
}

export interface Agreement {
  rewards: Record<string, number>;
  groups: number;
  cells: { first: string; second: string; alike: number; opposite: number; one: number }[];
}

export interface Disagreeing {
  count: number;
  pairs: { rows: [number, number]; first: [number, number]; second: [number, number] }[];
}

export interface Funnel {
  name: string | null;
  yields: Record<string, unknown> | null;
  mixture: unknown;
  reasons: { stage: string; reason: string; count: number }[];
  rejected: Record<string, unknown>[];
  difficulty: unknown;
}

export interface Note {
  n: number;
  mark: string;
  comment: string;
}
