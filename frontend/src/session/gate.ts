/** Where requests wait that were refused because the session has ended, until somebody is signed in again. */
export class SessionGate {
  private waiting: (() => void)[] = [];

  constructor(private readonly onEnded: () => void) {}

  /** Resolves once the gate is open. */
  wait(): Promise<void> {
    this.onEnded();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  open(): void {
    for (const goOn of this.waiting.splice(0)) goOn();
  }
}
