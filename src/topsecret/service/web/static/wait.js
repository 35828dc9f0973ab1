"use strict";
// Looks for the answer until it is there, then shows the page that has it.
{
  const card = document.getElementById("wait");
  const begun = Date.now() - 1000 * Number(card.dataset.age);
  let pause = 500;
  const look = async () => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    if (seconds > 0) {
      document.getElementById("elapsed").textContent =
        seconds === 1 ? "1 second so far" : `${seconds} seconds so far`;
    }
    try {
      const response = await fetch(card.dataset.answer, { headers: { accept: "application/json" } });
      if (response.status === 401 || (response.ok && (await response.json()).state !== "working")) {
        location.reload();
        return;
      }
    } catch {
      pause = 2000;
    }
    setTimeout(look, seconds > 20 ? 2000 : pause);
  };
  setTimeout(look, pause);
}
