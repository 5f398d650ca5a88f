// What Python gives to the drawing: see view_model.py and figures.py. Times are in milliseconds.

/** Values with the times from which they hold. */
export type Series<Value> = [at: number, value: Value][];

export interface Round {
  began: number;
  /** When the wait for members had ended, if it did. */
  formed: number | null;
  stable: number | null;
  /** The members that it waited for. */
  waited_for: number[];
  /** For whom it waited, how long and why. */
  waited: string;
  generation: number;
  protocol: string;
  leader: number;
  causes: string[];
  report: string;
  counts: Counts;
  /** By the number of the member. */
  members: Record<string, Counts>;
  flows: [from: number, to: number, count: number][];
  sentence: string;
  /** What can be said from a time on; the last one is the sentence. */
  sentences: Series<string>;
}

export interface Counts {
  kept: number;
  revoked: number;
  assigned: number;
  lost: number;
}

export interface Member {
  name: string;
  letter: string;
  colour: string;
  /** The colour of text on it. */
  ink: string;
  instance: string | null;
  states: Series<string>;
  calls: [at: number, kind: string, count: number][];
  /** What its protocol told: numbers of sentences. */
  told: Series<number>;
  generations: Series<number>;
  owned: Series<number>;
  /** null: unknown until the next measure. */
  lag: Series<number | null>;
  /** Records per second of its partitions. */
  load: Series<number>;
  /** Records per second; null: nothing limits it. */
  process_rate: Series<number | null>;
}

/** What a state of the group is to the protocol. */
export type Kind = "vacant" | "begun" | "between" | "resting" | "ended";

export interface StateMachine {
  /** With places from 0 to 1. */
  states: [name: string, x: number, y: number][];
  kinds: Record<string, Kind>;
  moves: [from: string, to: string][];
  coordinated: boolean;
}

/** The steps of the times, and those of the values in tenths, null if unknown. */
export type Packed = [times: number[], tenths: (number | null)[]];

export interface Facts {
  scenario: string;
  strategy: string;
  seed: number;
  duration: number;
  end: { state: string; generation: number };
  topics: { name: string; partitions: number }[];
  members: (Omit<Member, "lag"> & { lag: Packed })[];
  /** Points of a line. */
  lag: Series<number>;
  /** By topic: records per second of each partition, or a number that all have. */
  rates: Record<string, Series<number | number[]>>;
  /** How many partitions of topics that a member wants nobody works on. */
  idle: Series<number>;
  unowned_lag: Series<number | null>;
  states: Series<string>;
  machine: StateMachine;
  /** By topic: when it got partitions, and the number of the first new one. */
  added: Record<string, [at: number, first: number][]>;
  /** By topic that does not exist at the end: when it was deleted. */
  deleted: Record<string, number>;
  sentences: string[];
  marks: Series<string>;
  findings: string[];
  rounds: Round[];
  /** A place from 0 to 1 for each member. */
  circle: [x: number, y: number][];
  /** The time from which on the figures count. */
  counts: number;
  /** When the first round after the start of the group begins. */
  opens: number | null;
}

export interface ViewState {
  document: Facts;
  /** int32, four for each span: partition, owner, from, to. Ordered by partition, then by time. */
  spans: ArrayBufferView | ArrayBuffer;
}

export interface Cell {
  text: string;
  number: number | null;
  spread: string;
  /** Of the largest number of the metric, from 0 to 1. */
  share: number;
  best: boolean;
  difference: string;
}

export interface Metric {
  name: string;
  unit: string;
  definition: string;
  headline: boolean;
  differs: boolean;
  cells: Cell[];
}

/** A comparison. */
export interface Figures {
  title: string;
  workload: string;
  answer: string;
  reasons: string[];
  strategies: string[];
  groups: { name: string; metrics: Metric[] }[];
  /** Numbers of strategies. */
  front: number[];
  front_line: string;
}

/** All that is shared between Python and the page. */
export interface State {
  views: ViewState[];
  figures: Figures | { groups?: undefined; strategies?: undefined; workload?: undefined };
  errors: string[];
  at: number;
  round: number;
  selected: string;
  /** The stretch of time that is shown; empty for what happens first. */
  zoom: number[];
  /** In any order. */
  notes: Series<string>;
  /** The name by which the manager of the widgets knows this one; an exported page has none. */
  own_id: string;
  /** Of an exported page: whether its address names the place. */
  address?: boolean;
}

/** A message of the kernel. */
export interface Message {
  content: { data: { method: string } };
}

/** The interface of ipywidgets' model that is used here. */
export interface Widget {
  comm?: { on_msg(handle: (message: Message) => unknown): void; send(data: object, callbacks: object): void };
  _handle_comm_msg(message: Message): Promise<unknown>;
}

/** The interface of anywidget's model that is used here. */
export interface Model {
  get<Name extends keyof State>(name: Name): State[Name];
  set<Name extends keyof State>(name: Name, value: State[Name]): void;
  save_changes(): void;
  on(change: `change:${keyof State}`, listener: () => void): void;
  off(change: `change:${keyof State}`, listener: () => void): void;
  /** An exported page has none. */
  widget_manager?: { get_model(id: string): Promise<Widget | undefined> };
}

declare module "./trace.js" {
  interface Trace extends Omit<Facts, "members"> { // the constructor assigns them
    members: Member[];
  }
}

declare global {
  interface Element {
    setAttribute(name: string, value: string | number | boolean): void; // as browsers do
  }
}
