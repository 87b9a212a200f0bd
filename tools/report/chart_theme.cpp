#include <nlohmann/json.hpp>

#include "tools/report/chart.hpp"

namespace ddprun::report {
namespace {

struct Palette {
  const char *ground, *text, *faint, *grid, *inside;
  std::vector<std::string> series;
};

// After Okabe and Ito's palette, ordered for contrast between neighbours; lighter on a dark background.
const Palette kLight = {"#ffffff", "#1f2328",
                        "#59636e", "#e4e7eb",
                        "#ffffff", {"#0072b2", "#d55e00", "#009e73", "#b35c8e", "#b98300", "#3a9bd0", "#6b7280"}};
const Palette kDark = {"#16191f", "#e6e9ee",
                       "#9aa4b2", "#2b313a",
                       "#101317", {"#56b4e9", "#f08a3c", "#2bc49a", "#e39ac4", "#e6c229", "#8fb8ff", "#a8b0bb"}};

}  // namespace

std::string chart_theme(bool dark) {
  const Palette& palette = dark ? kDark : kLight;
  const nlohmann::ordered_json theme = {
      {"background", palette.ground},
      {"font", "system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif"},
      {"view", {{"stroke", nullptr}}},
      {"range", {{"category", palette.series}}},
      {"axis",
       {{"labelColor", palette.faint},
        {"titleColor", palette.faint},
        {"gridColor", palette.grid},
        {"domainColor", palette.grid},
        {"tickColor", palette.grid},
        {"labelFontSize", 12},
        {"titleFontSize", 12},
        {"titleFontWeight", "normal"},
        {"titlePadding", 8}}},
      {"axisY", {{"labelLimit", 240}}},
      {"legend",
       {{"orient", "top"},
        {"title", nullptr},
        {"labelColor", palette.text},
        {"labelFontSize", 12},
        {"labelLimit", 280},
        {"symbolStrokeWidth", 2}}},
      {"title", {{"anchor", "start"}, {"color", palette.text}, {"subtitleColor", palette.faint}, {"fontSize", 15}}},
      {"style",
       {{"value", {{"color", palette.text}, {"fontSize", 12}, {"baseline", "middle"}}},
        {"halo",
         {{"color", palette.ground},
          {"stroke", palette.ground},
          {"strokeWidth", 4},
          {"fontSize", 12},
          {"baseline", "middle"}}},
        {"inside", {{"color", palette.inside}, {"fontSize", 12}, {"align", "center"}, {"baseline", "middle"}}},
        {"whisker", {{"color", palette.text}, {"strokeWidth", 1.5}}},
        {"span", {{"stroke", palette.ground}, {"strokeWidth", 1}}},
        {"reference", {{"color", palette.faint}, {"strokeDash", {5, 4}}, {"strokeWidth", 1.5}}},
        {"reference-name", {{"color", palette.faint}, {"fontSize", 12}}}}}};
  return theme.dump();
}

}  // namespace ddprun::report
