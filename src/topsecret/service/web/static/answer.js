"use strict";
// Sorts the tables of an answer by a column, and draws the bars of their counts as a picture.
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0];
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => {
    const [one, other] = [Number(a), Number(b)];
    return Number.isNaN(one) || Number.isNaN(other) ? a.localeCompare(b) : one - other;
  };
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => order(value(a, column), value(b, column)));
      body.append(...(down ? rows.reverse() : rows));
    });
  }

  const button = document.querySelector(`[data-table="${table.id}"]`);
  if (button !== null) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const rows = [...body.rows].map((row) => [...row.cells].slice(1).map((cell) => cell.dataset.value ?? cell.textContent));
      const numbers = rows.map(([label, ...rest]) => [label, ...rest.map(Number)]);
      const most = Math.max(1, ...numbers.map(([, , , high]) => high));
      const [width, line, left, right] = [1200, 44, 380, 240];
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = line * numbers.length + 120;
      const pen = canvas.getContext("2d");
      const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
      const place = (count) => left + ((width - left - right) * Math.max(0, count)) / most;
      pen.fillStyle = colour("--card");
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.textBaseline = "middle";
      const write = (text, x, y, font, align = "left", room = width) => {
        pen.fillStyle = colour("--ink");
        pen.font = font;
        pen.textAlign = align;
        pen.fillText(text, x, y, room);
      };
      write(button.dataset.title, 24, 36, "600 26px sans-serif", "left", width - 48);
      for (const [number, [label, count, low, high]] of numbers.entries()) {
        const y = 70 + line * number + line / 2;
        write(label, left - 16, y, "20px sans-serif", "right", left - 40);
        pen.fillStyle = colour("--accent");
        pen.fillRect(left, y - 12, Math.max(1, place(count) - left), 24);
        pen.fillStyle = colour("--ink");
        pen.fillRect(place(low), y - 1.5, Math.max(1, place(high) - place(low)), 3);
        write(`${count.toLocaleString("en")} (${low.toLocaleString("en")} to ${high.toLocaleString("en")})`, width - right + 16, y, "18px sans-serif", "left", right - 32);
      }
      write(button.dataset.note, 24, canvas.height - 26, "16px sans-serif", "left", width - 48);
      canvas.toBlob((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = button.dataset.file;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      }, "image/png");
    });
  }
}
