// Draws the charts of a report with Vega, in the colours that the reader's system asks for.
(() => {
  const { light, dark, charts } = JSON.parse(document.getElementById("charts").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawings = [...document.querySelectorAll(".drawing")];

  const fail = (drawing, error) => {
    drawing.classList.add("failed");
    drawing.textContent = `This chart could not be drawn: ${error.message}. Its figures are in the table below.`;
  };

  // Names of bars and lanes take less than half of the width; a legend begins to the right of them.
  const config = (drawing) => {
    const theme = prefersDark.matches ? dark : light, part = Math.round(drawing.clientWidth * 0.38);
    return { ...theme, axisY: { ...theme.axisY, labelLimit: part }, legend: { ...theme.legend, labelLimit: part + 80 } };
  };

  // On a phone, each name of a legend has a line.
  const specification = (drawing, i) => JSON.parse(JSON.stringify(charts[i]), (key, value) =>
    key === "legend" && value && drawing.clientWidth < 450 ? { ...value, columns: 1 } : value);

  const draw = () =>
    Promise.all(drawings.map((drawing, i) => window.vegaEmbed(drawing, specification(drawing, i), {
      mode: "vega-lite",
      renderer: "svg",
      config: config(drawing),
      tooltip: { theme: prefersDark.matches ? "dark" : "light" },
      actions: false,
    }).catch((error) => fail(drawing, error))));

  const redraw = () => draw().then(() => { document.body.dataset.drawn = drawings.length; });
  prefersDark.addEventListener("change", redraw);
  redraw();
})();
