"use strict";
// Shows, while the slider moves, what the budget would buy. The words come from the server's plan.
{
  const form = document.getElementById("ask");
  const panel = document.getElementById("plan");
  const epsilons = form.dataset.epsilons.split(" ").filter(Boolean).map(Number);
  const field = (name) => form.elements.namedItem(name);
  const show = (name) => panel.querySelector(`[data-of="${name}"]`);
  const plans = new Map();
  let wanted = "";
  let timer = 0;

  const listed = (name) => field(name).value.split(",").map((part) => part.trim()).filter(Boolean);
  const grouped = () => field("group_by") !== null && field("group_by").value !== "";

  const question = (step) => {
    const query = field("query");
    if (query !== null && query.value.trim()) {
      return epsilons.length ? { query: query.value, epsilon: epsilons[step] } : { query: query.value };
    }
    const length = field("length") === null ? "k" : field("length").value;
    const asked = { column: field("column").value, k: length === "k" ? Number(field("k").value) : length };
    if (epsilons.length) asked.epsilon = epsilons[step];
    if (field("counts") !== null && field("counts").checked) asked.counts = true;
    const by = field("by").value;
    if (by !== "persons") {
      asked.measure = { of: by === "rows" ? "rows" : "sum", max_per_item: listed("bound") };
      if (by !== "rows") {
        asked.measure.column = by.slice("sum:".length);
        asked.measure.unit = field("unit").value;
      }
    }
    if (grouped()) {
      asked.groups = { by: field("group_by").value, values: listed("groups"), disjoint: field("disjoint").checked };
    }
    const where = [];
    for (const line of form.querySelectorAll("[data-filter]")) {
      const column = line.dataset.filter;
      const value = line.querySelector("input").value.trim();
      if (value) where.push({ column, verb: line.querySelector("select").value, value });
    }
    if (where.length) asked.where = where;
    return asked;
  };

  const fetchPlan = (asked) => {
    const key = JSON.stringify(asked);
    if (!plans.has(key)) {
      plans.set(key, (async () => {
        const response = await fetch(form.dataset.plan.replace(/plan$/, "query" in asked ? "sql/plan" : "plan"), {
          method: "POST",
          headers: { "content-type": "application/json", "x-csrf-token": form.dataset.csrf },
          body: key,
        });
        const body = await response.json();
        if (!response.ok) plans.delete(key);
        return { ok: response.ok, body };
      })());
      plans.get(key).catch(() => plans.delete(key));
    }
    return plans.get(key);
  };

  const draw = (plan) => {
    for (const name of ["answer", "buys", "protects", "takes"]) show(name).textContent = plan[name];
    show("again").textContent = `${plan.again.toLocaleString("en")} like this one`;
    const lead = show("lead");
    lead.hidden = plan.lead === null;
    if (plan.lead !== null) lead.querySelector("b").textContent = plan.lead.toLocaleString("en");
    show("lead_in").textContent = plan.lead_in;
    show("ahead").hidden = plan.mechanism === "weighted"; // an item is looked at by itself
    const left = 100 * plan.left;
    const cost = Math.min(100 * plan.cost, left);
    panel.querySelector(".cost").hidden = false;
    document.getElementById("left").setAttribute("width", left);
    document.getElementById("take").setAttribute("x", left - cost);
    document.getElementById("take").setAttribute("width", cost);
    document.getElementById("go").disabled = !plan.fits;
    panel.classList.toggle("over", !plan.fits);
  };

  // No number of another question is shown, and nothing is asked before its own are there.
  const pending = () => {
    document.getElementById("go").disabled = true;
    panel.setAttribute("aria-busy", "true");
    panel.querySelector(".cost").hidden = true;
    show("lead").hidden = true;
    for (const name of ["answer", "buys", "protects", "takes", "again"]) show(name).textContent = "–";
  };

  const refresh = async () => {
    const step = epsilons.length ? Number(field("step").value) : 0;
    const asked = question(step);
    const mine = (wanted = JSON.stringify(asked));
    try {
      const { ok, body } = await fetchPlan(asked);
      if (wanted !== mine) return;
      if (ok) {
        draw(body);
      } else {
        show("answer").textContent = body.message;
        for (const name of ["buys", "protects", "takes", "again"]) show(name).textContent = "–";
        show("lead").hidden = true;
      }
    } catch {
      if (wanted === mine) show("answer").textContent = "The server did not answer. Try again.";
    }
    if (wanted === mine) panel.setAttribute("aria-busy", "false");
  };

  const changed = () => {
    const length = field("length");
    const persons = field("by").value === "persons";
    field("bound").disabled = persons;
    field("unit").disabled = persons || field("by").value === "rows";
    if (field("group_by") !== null) {
      field("groups").disabled = !grouped();
      field("groups").required = grouped();
      field("disjoint").disabled = !grouped();
    }
    if (length !== null) {
      length.disabled = !persons || grouped();
      if (length.disabled) length.value = "k";
      field("k").disabled = length.value !== "k";
      field("counts").disabled = length.value === "all" || !persons;
    }
    if (field("counts") !== null && field("counts").disabled) field("counts").checked = false;
    if (epsilons.length) {
      const epsilon = epsilons[Number(field("step").value)];
      document.getElementById("epsilon").textContent = `ε = ${epsilon}`;
      field("step").setAttribute("aria-valuetext", `epsilon ${epsilon}`);
    }
    wanted = "";
    clearTimeout(timer);
    pending();
    const wrong = form.querySelector("input:invalid, textarea:invalid");
    if (wrong !== null) {
      show("answer").textContent = `${wrong.labels[0].firstChild.textContent.trim()}: ${wrong.validationMessage}`;
      panel.setAttribute("aria-busy", "false");
      return;
    }
    timer = setTimeout(refresh, 80);
  };

  form.addEventListener("input", changed);
  form.addEventListener("submit", () => {
    document.getElementById("go").disabled = true;
  });
  // A page that comes back from the browser's memory can be used again.
  addEventListener("pageshow", changed);
}
