/** Questions to the server, or to the data of exported pages. */

import { useEffect, useState } from "preact/hooks";
import { answer } from "./exported";

export const isExported = document.documentElement.dataset.exported === "yes";

/** The answer to a question. Throws an `Error` with the server's words. */
export async function ask<T>(question: string, asked: Record<string, string | number> = {}): Promise<T> {
  const words = Object.fromEntries(Object.entries(asked).map(([name, value]) => [name, String(value)]));
  if (isExported) return (await answer(question, words)) as T;
  const response = await fetch(`api/${question}?${new URLSearchParams(words)}`);
  return told<T>(response);
}

/** Send something that is written down. */
export async function send<T>(question: string, body: unknown): Promise<T> {
  const response = await fetch(`api/${question}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return told<T>(response);
}

async function told<T>(response: Response): Promise<T> {
  const text = await response.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text || `the server answered with ${response.status}`);
  }
  if (!response.ok) throw new Error((value as { error?: string }).error ?? `the server answered with ${response.status}`);
  return value as T;
}

export interface Answer<T> {
  value: T | null;
  error: string;
}

/** The answer to a question, asked again when it or `again` changes; the last answer stays until the next is there. */
export function useAnswer<T>(question: string, asked: Record<string, string | number> | null, again: unknown = 0): Answer<T> {
  const [answered, setAnswered] = useState<Answer<T> & { of: string }>({ value: null, error: "", of: "" });
  const key = asked === null ? "" : `${question}?${JSON.stringify(asked)}`;
  useEffect(() => {
    if (asked === null) return;
    let wanted = true;
    ask<T>(question, asked).then(
      (value) => wanted && setAnswered({ value, error: "", of: key }),
      (error: Error) => wanted && setAnswered((last) => ({ value: last.of === key ? last.value : null, error: error.message, of: key })),
    );
    return () => {
      wanted = false;
    };
  }, [key, again]);
  return answered;
}
