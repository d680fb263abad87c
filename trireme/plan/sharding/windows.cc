#include "trireme/plan/sharding/windows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "trireme/plan/sharding/dimension_map.h"

namespace trireme::sharding {
namespace {

using graph::ArgumentList;
using graph::Graph;
using graph::Node;
using graph::Size;

/// Positions of the arguments of an operator; -1: it has none.
struct Arguments {
  int kernel = -1;  ///< -1: the weight's dimension 2.
  int stride = -1, padding = -1, dilation = -1;
  int output_padding = -1;
};

enum class Family : std::uint8_t { kConvolution, kTransposed, kMaximum, kAverage, kNearest };

struct Operator {
  Family family;
  int spatial = 2;  ///< Dimensions.
  Arguments at = {};
};

const std::map<std::string_view, Operator>& operators() {
  static const std::map<std::string_view, Operator> kTable = [] {
    constexpr Arguments kConvolution{.stride = 3, .padding = 4, .dilation = 5};
    constexpr Arguments kTransposed{.stride = 3, .padding = 4, .dilation = 7, .output_padding = 5};
    constexpr Arguments kMaximum{.kernel = 1, .stride = 2, .padding = 3, .dilation = 4};
    constexpr Arguments kAverage{.kernel = 1, .stride = 2, .padding = 3};
    return std::map<std::string_view, Operator>{
        {"aten::conv1d", {Family::kConvolution, 1, kConvolution}},
        {"aten::conv2d", {Family::kConvolution, 2, kConvolution}},
        {"aten::conv3d", {Family::kConvolution, 3, kConvolution}},
        {"aten::conv_transpose1d", {Family::kTransposed, 1, kTransposed}},
        {"aten::conv_transpose2d", {Family::kTransposed, 2, kTransposed}},
        {"aten::conv_transpose3d", {Family::kTransposed, 3, kTransposed}},
        {"aten::max_pool1d", {Family::kMaximum, 1, kMaximum}},
        {"aten::max_pool2d", {Family::kMaximum, 2, kMaximum}},
        {"aten::max_pool3d", {Family::kMaximum, 3, kMaximum}},
        {"aten::avg_pool2d", {Family::kAverage, 2, kAverage}},
        {"aten::avg_pool3d", {Family::kAverage, 3, kAverage}},
        {"aten::upsample_nearest1d", {Family::kNearest, 1}},
        {"aten::upsample_nearest2d", {Family::kNearest, 2}},
        {"aten::upsample_nearest3d", {Family::kNearest, 3}},
    };
  }();
  return kTable;
}

/// The number for rows of an argument that has one for each dimension, or one for all.
std::optional<std::int64_t> first_at(const Node& node, int index) {
  if (const auto number = integer_at(node, index)) return number;
  const auto numbers = integers_at(node, index);
  if (!numbers || numbers->empty()) return std::nullopt;
  return numbers->front();
}

const std::vector<Size>& sizes_at(const Graph& graph, graph::ValueId value) {
  return graph.values[value].shape;
}

/// Averages of windows that reach beyond an edge are of all their rows, whichever shard has them.
bool averages_all_alike(const Node& node, const Window& window) {
  constexpr std::size_t kCeils = 4, kCountsPadding = 5;
  return !bool_at(node, kCeils).value_or(true) &&
         (window.padding == 0 || bool_at(node, kCountsPadding).value_or(false));
}

std::optional<Window> nearest(const Graph& graph, const Node& node) {
  const Size in = sizes_at(graph, *value_at(node, 0))[kRowDim];
  const Size out = sizes_at(graph, node.outputs.front())[kRowDim];
  if (!in.is_fixed() || !out.is_fixed() || in.fixed <= 0 || out.fixed % in.fixed != 0) {
    return std::nullopt;
  }
  const std::int64_t factor = out.fixed / in.fixed;
  // A scale that is given beside the size is what torch goes by.
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    const auto* list = std::get_if<ArgumentList>(&node.inputs[i].content);
    const auto* given = list != nullptr && !list->empty() ? &list->front() : &node.inputs[i];
    if (std::holds_alternative<std::monostate>(given->content)) continue;
    const auto* real = std::get_if<graph::Real>(&given->content);
    if (real == nullptr || real->fixed != static_cast<double>(factor)) return std::nullopt;
    break;  // the others are of other dimensions
  }
  return Window{.kernel = factor, .stride = factor, .is_transposed = true};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// Sets the item for rows of a list that may be one number for all dimensions.
void set_first(graph::Argument& argument, std::int64_t number, int spatial) {
  auto* list = std::get_if<ArgumentList>(&argument.content);
  if (list == nullptr) {
    const graph::Argument all = argument;
    argument.content = ArgumentList(static_cast<std::size_t>(spatial), all);
  } else if (list->size() == 1) {
    list->resize(static_cast<std::size_t>(spatial), list->front());
  }
  std::get<ArgumentList>(argument.content).front() = {Size{0, number}};
}

}  // namespace

std::optional<Window> window_of(const Graph& graph, const Node& node) {
  const auto found = operators().find(node.op);
  if (found == operators().end() || node.outputs.size() != 1 || node.outputs.front() < 0) {
    return std::nullopt;
  }
  const auto& [family, spatial, at] = found->second;
  const auto input = value_at(node, 0);
  if (!input || std::ssize(sizes_at(graph, *input)) != spatial + 2) return std::nullopt;
  if (family == Family::kNearest) return nearest(graph, node);
  Window window;
  if (at.kernel < 0) {
    const auto weight = value_at(node, 1);
    if (!weight || !sizes_at(graph, *weight)[kRowDim].is_fixed()) return std::nullopt;
    window.kernel = sizes_at(graph, *weight)[kRowDim].fixed;
  } else {
    const auto kernel = first_at(node, at.kernel);
    if (!kernel) return std::nullopt;
    window.kernel = *kernel;
  }
  const auto padding = first_at(node, at.padding);
  if (!padding) return std::nullopt;  // `same`
  window.padding = *padding;
  // A pool without a stride goes from window to window.
  window.stride = first_at(node, at.stride).value_or(window.kernel);
  if (at.dilation >= 0) window.dilation = first_at(node, at.dilation).value_or(1);
  window.is_transposed = family == Family::kTransposed;
  if (family == Family::kMaximum) window.fill = -std::numeric_limits<double>::infinity();
  if (family == Family::kAverage && !averages_all_alike(node, window)) return std::nullopt;
  return window;
}

std::optional<WindowRows> rows_for(const Window& window, RowRange output,
                                   std::int64_t input_extent) {
  const auto& [kernel, stride, padding, dilation, is_transposed, fill] = window;
  const std::int64_t reach = (kernel - 1) * dilation;
  if (!is_transposed) {
    const RowRange input{output.begin * stride - padding,
                         (output.end - 1) * stride - padding + reach + 1};
    if (overlap(input, {0, input_extent}).size() == 0) return std::nullopt;
    return WindowRows{input, output.size(), 0};
  }
  const RowRange input{std::max<std::int64_t>(0, ceil_div(output.begin + padding - reach, stride)),
                       std::min(input_extent, floor_div(output.end - 1 + padding, stride) + 1)};
  if (input.size() <= 0) return std::nullopt;
  const std::int64_t first = input.begin * stride - padding;
  const std::int64_t num_made = (input.size() - 1) * stride + reach + 1;
  if (first > output.begin || first + num_made < output.end) return std::nullopt;
  return WindowRows{input, num_made, output.begin - first};
}

void make_unpadded(Node& node, std::int64_t num_made) {
  const auto& [family, spatial, at] = operators().at(node.op);
  if (family == Family::kNearest) {
    if (!std::holds_alternative<std::monostate>(node.inputs[1].content)) {
      set_first(node.inputs[1], num_made, spatial);
    }
    return;
  }
  set_first(node.inputs[at.padding], 0, spatial);
  if (at.output_padding >= 0) set_first(node.inputs[at.output_padding], 0, spatial);
}

}  // namespace trireme::sharding
