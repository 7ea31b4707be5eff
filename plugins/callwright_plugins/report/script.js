// Shows the values under the pointer. The page is whole without it.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const shown = (value) => (value === null ? "–" : String(value));
  for (const plot of document.querySelectorAll("svg.plot")) {
    const data = JSON.parse(plot.dataset.chart);
    const rule = plot.querySelector(".rule");
    const leave = () => {
      tip.hidden = true;
      rule.classList.remove("on");
    };
    const move = (event) => {
      if (!data.x.length) return;
      const box = plot.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * data.width;
      const share = Math.min(1, Math.max(0, (at - data.left) / (data.right - data.left)));
      const first = data.x[0];
      const last = data.x[data.x.length - 1];
      const wanted = first + share * (last - first);
      let index = 0;
      for (let i = 1; i < data.x.length; i++) {
        if (Math.abs(data.x[i] - wanted) < Math.abs(data.x[index] - wanted)) index = i;
      }
      const x = last > first ? data.left + ((data.x[index] - first) / (last - first)) * (data.right - data.left) : (data.left + data.right) / 2;
      rule.setAttribute("x1", x);
      rule.setAttribute("x2", x);
      rule.classList.add("on");
      tip.replaceChildren();
      const head = document.createElement("b");
      head.textContent = `step ${data.x[index]}`;
      tip.append(head);
      for (const line of data.lines) {
        const row = document.createElement("span");
        row.className = line.style;
        const mean = line.smooth ? `, mean ${shown(line.smooth[index])}` : "";
        row.textContent = `${line.name} ${shown(line.raw[index])}${mean}`;
        tip.append(row);
      }
      tip.hidden = false;
      const width = tip.offsetWidth;
      const left = Math.min(Math.max(8, event.clientX + 14), document.documentElement.clientWidth - width - 8);
      tip.style.left = `${left + window.scrollX}px`;
      tip.style.top = `${box.top + window.scrollY - tip.offsetHeight - 4}px`;
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerdown", move);
    plot.addEventListener("pointerleave", leave);
  }
  for (const command of document.querySelectorAll("pre.command")) {
    if (!navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.firstChild.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    command.append(button);
  }
})();
