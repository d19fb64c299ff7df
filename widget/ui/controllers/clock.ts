import type { ReactiveController, ReactiveControllerHost } from "lit";

/** The hosts that currently show a running time. */
const hosts = new Set<ReactiveControllerHost>();

let timer: ReturnType<typeof setInterval> | undefined;

/** Redraws its host once a second while the host shows a running time. One timer per page; none while it is hidden. */
export class Clock implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  readonly #isShown: () => boolean;

  constructor(host: ReactiveControllerHost, isShown: () => boolean) {
    this.#host = host;
    this.#isShown = isShown;
    host.addController(this);
  }

  hostUpdated(): void {
    if (!this.#isShown()) this.hostDisconnected();
    else if (!hosts.has(this.#host)) {
      hosts.add(this.#host);
      run();
    }
  }

  hostDisconnected(): void {
    if (hosts.delete(this.#host)) run();
  }
}

/** Whole seconds since `start` (milliseconds since the epoch); `-Infinity` if it is not known. */
export function secondsSince(start = Number.POSITIVE_INFINITY): number {
  return Math.floor((Date.now() - start) / 1_000);
}

/** Starts or stops the timer. */
function run(): void {
  clearInterval(timer);
  document.removeEventListener("visibilitychange", runAgain);
  if (hosts.size === 0) return;
  document.addEventListener("visibilitychange", runAgain);
  if (!document.hidden) timer = setInterval(draw, 1_000);
}

function runAgain(): void {
  draw();
  run();
}

function draw(): void {
  for (const host of hosts) host.requestUpdate();
}
