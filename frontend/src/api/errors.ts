/** An answer of the server that is not a success. `message` is the server's own sentence, fit to show. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly param: string | null = null,
    /** Whatever else the server said of it. */
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = "ApiError";
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** Reads `{"error": {message, code, param}}`; anything else becomes a sentence that names the status. */
export function errorFromBody(status: number, body: unknown): ApiError {
  const error = isRecord(body) && isRecord(body.error) ? body.error : {};
  const fallback = `The server answered ${status} without saying why. Try again, then look at its log.`;
  return new ApiError(
    status,
    textOf(error.message) ?? fallback,
    textOf(error.code),
    textOf(error.param),
    error,
  );
}

export function errorFromText(status: number, text: string): ApiError {
  try {
    return errorFromBody(status, JSON.parse(text));
  } catch {
    return errorFromBody(status, null);
  }
}

export async function errorFromResponse(response: Response): Promise<ApiError> {
  return errorFromText(response.status, await response.text());
}

/** What to show for anything that was thrown. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError) return "The server cannot be reached. Check that it is running.";
  return error instanceof Error ? error.message : String(error);
}
