// Draws the charts of a report with Vega, in the colours that the reader's system asks for.
(() => {
  const { light, dark, charts } = JSON.parse(document.getElementById("charts").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawings = [...document.querySelectorAll(".drawing")];

  const fail = (drawing, error) => {
    drawing.classList.add("failed");
    drawing.textContent = `This chart could not be drawn: ${error.message}. Its figures are in the table below.`;
  };

  // Names of bars and lanes take less than half of the width.
  const config = (drawing) => {
    const theme = prefersDark.matches ? dark : light;
    return { ...theme, axisY: { ...theme.axisY, labelLimit: Math.round(drawing.clientWidth * 0.38) } };
  };

  const draw = () =>
    Promise.all(drawings.map((drawing, i) => window.vegaEmbed(drawing, structuredClone(charts[i]), {
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
