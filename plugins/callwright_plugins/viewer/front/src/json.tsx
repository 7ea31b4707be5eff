/** JSON as a tree that folds. */

import { useState } from "preact/hooks";
import { cut, plain } from "./words";

const OPEN = 2;
const MOST = 100;

export function Json({ value, depth = 0, name }: { value: unknown; depth?: number; name?: string }) {
  const size = value !== null && typeof value === "object" ? Object.keys(value).length : 0;
  const [open, setOpen] = useState(depth < OPEN && size <= 12);
  const [most, setMost] = useState(MOST);
  const label = name === undefined ? null : <span class="json-name">{plain(name)}</span>;
  if (value === null || typeof value !== "object") {
    return (
      <div class="json-line">
        {label}
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const marks = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (!entries.length) {
    return (
      <div class="json-line">
        {label}
        <span class="json-mark">{marks.join("")}</span>
      </div>
    );
  }
  return (
    <div class="json">
      <button class="json-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {label}
        <span class="json-mark">{open ? marks[0] : `${marks[0]} ${cut(plain(JSON.stringify(value).slice(1, 80)), 64)} ${marks[1]}`}</span>
      </button>
      {open && (
        <div class="json-inside">
          {entries.slice(0, most).map(([key, one]) => (
            <Json key={key} value={one} depth={depth + 1} name={Array.isArray(value) ? undefined : key} />
          ))}
          {entries.length > most && (
            <button class="link" onClick={() => setMost(most * 10)}>
              {entries.length - most} more
            </button>
          )}
        </div>
      )}
      {open && <span class="json-mark">{marks[1]}</span>}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? "null" : typeof value;
  const [whole, setWhole] = useState(false);
  const text = typeof value === "string" ? plain(value) : String(value);
  const long = text.length > 600 && !whole;
  return (
    <span class={`json-${kind}`}>
      {long ? cut(text, 600) : text}
      {long && (
        <button class="link" onClick={() => setWhole(true)}>
          {text.length - 600} more characters
        </button>
      )}
    </span>
  );
}
