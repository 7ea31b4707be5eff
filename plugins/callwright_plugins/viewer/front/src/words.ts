/** Figures and texts as people read them. */

export function figure(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 1 : digits });
}

export function signed(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return value > 0 ? `+${figure(value)}` : figure(value);
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}%`;
}

export function count(value: number, word: string, words = `${word}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? word : words}`;
}

/** Characters that change the order or hide in a text are shown as what they are: nobody is fooled by a completion. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (one) => {
    const code = one.codePointAt(0) ?? 0;
    return `\u27e8${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

export function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

export function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** From 0 (the worst) to 1 (the best), for a colour; `null` where there is no telling. */
export function tone(value: number | null, low: number | null, high: number | null): string {
  if (value === null) return "unknown";
  const least = low ?? 0;
  const most = high ?? 1;
  if (value >= most - 1e-9) return "full";
  return value <= least + 1e-9 ? "none" : "part";
}
