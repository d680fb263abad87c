#include "trireme/plan/sharding/tiled_norm.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/node_writer.h"
#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/sizes.h"

namespace trireme::sharding {
namespace {

using graph::Node;
using graph::Size;
using graph::ValueId;
using Ids = PartValues::Ids;

constexpr std::size_t kWeight = NormPositions::kWeight, kBias = NormPositions::kBias;

class NormWriter {
 public:
  NormWriter(PartValues& values, const Node& node, const TileRule& rule)
      : values_(values),
        node_(node),
        rule_(rule),
        at_(*norm_positions(node)),
        writer_(values, node) {}

  void run(const NormTiles& tiles) {
    find_shape();
    const Ids x = in_f32(tiles.inputs), residuals = in_f32(tiles.residuals);
    const ValueId mean = mean_of(x);
    const Ids means = writer_.give(mean);
    Ids differences;
    for (std::size_t i = 0; i < x.size(); ++i) {
      differences.push_back(
          writer_.add_like("aten::sub.Tensor", {tensor(x[i]), tensor(means[i]), integer(1)}, x[i]));
    }
    const ValueId squares = squares_of(differences);
    add_running(mean, squares);
    const Ids scales = writer_.give(scale_of(squares));
    const auto bias = shaped(kBias);
    const Ids biases = bias ? Ids(writer_.give(*bias)) : Ids();
    for (std::size_t i = 0; i < x.size(); ++i) {
      Ids added;
      if (!biases.empty()) added.push_back(biases[i]);
      if (!residuals.empty()) added.push_back(residuals[i]);
      finish(differences[i], scales[i], added, tiles.outputs[i]);
    }
  }

 private:
  void find_shape() {
    statistics_shape_ = values_.whole().values[*value_at(node_, 0)].shape;
    for (const int dim : rule_.over) {
      count_ = times(count_, statistics_shape_[dim]);
      statistics_shape_[dim] = {0, 1};
    }
  }

  Ids in_f32(const Ids& inputs) {
    Ids x;
    for (const ValueId id : inputs) x.push_back(writer_.in_f32(id));
    return x;
  }

  /// Of tiles, over all shards.
  ValueId total(const Ids& tiles) {
    Ids partial;
    for (const ValueId tile : tiles) {
      partial.push_back(
          writer_.add("aten::sum.dim_IntList",
                      {tensor(tile), integers({rule_.over.begin(), rule_.over.end()}), {true}, {}},
                      statistics_shape_, Dtype::kF32));
    }
    return writer_.add_over_shards(kSumOfShards, partial);
  }

  ValueId mean_of(const Ids& x) {
    const ValueId sum = total(x);
    return writer_.add_like("aten::div.Scalar", {tensor(sum), {count_}}, sum);
  }

  ValueId squares_of(const Ids& differences) {
    Ids squares;
    for (const ValueId d : differences) {
      squares.push_back(writer_.add_like("aten::mul.Tensor", {tensor(d), tensor(d)}, d));
    }
    return total(squares);
  }

  /// A parameter [C] as [1, C, 1, ...].
  std::optional<ValueId> shaped(std::size_t index) {
    const auto id = value_at(node_, index);
    if (!id) return std::nullopt;
    std::vector<Size> shape(statistics_shape_.size(), Size{0, 1});
    shape[1] = statistics_shape_[1];
    graph::ArgumentList sizes;
    for (const Size& size : shape) sizes.push_back({size});
    return writer_.add("aten::view", {tensor(*id), {std::move(sizes)}}, shape, Dtype::kF32);
  }

  ValueId scale_of(ValueId squares) {
    const ValueId variance =
        writer_.add_like("aten::div.Scalar", {tensor(squares), {count_}}, squares);
    const ValueId moved = writer_.add_like(
        "aten::add.Scalar", {tensor(variance), node_.inputs[at_.eps], integer(1)}, variance);
    const ValueId scale = writer_.add_like("aten::rsqrt", {tensor(moved)}, moved);
    const auto weight = shaped(kWeight);
    if (!weight) return scale;
    return writer_.add_like("aten::mul.Tensor", {tensor(scale), tensor(*weight)}, scale);
  }

  bool has_relu() const {
    return at_.relu >= 0 && bool_at(node_, static_cast<std::size_t>(at_.relu)).value_or(false);
  }

  /// The last call makes the output, in its type.
  void finish(ValueId difference, ValueId scale, const Ids& added, ValueId output) {
    std::vector<std::pair<std::string, graph::ArgumentList>> calls = {
        {"aten::mul.Tensor", {tensor(difference), tensor(scale)}}};
    for (const ValueId id : added) {
      calls.push_back({"aten::add.Tensor", {{}, tensor(id), integer(1)}});
    }
    if (has_relu()) calls.push_back({"aten::relu", {{}}});
    const Dtype dtype = writer_.value(output).dtype;
    if (dtype != Dtype::kF32) {
      calls.push_back({"aten::to.dtype", {{}, {dtype}, {false}, {false}, {}}});
    }
    ValueId y = -1;
    for (auto& [op, inputs] : calls) {
      if (y >= 0) inputs.front() = tensor(y);
      if (&op == &calls.back().first) return writer_.add_onto(output, op, std::move(inputs));
      y = writer_.add_like(op, std::move(inputs), difference);
    }
  }

  /// Running statistics: the node itself on two rows, mean - d and mean + d, whose variance 2 d d is the sum of squares by
  /// n - 1, as of all rows.
  void add_running(ValueId mean, ValueId squares) {
    if (at_.running_mean < 0 || !value_at(node_, at_.running_mean)) return;
    writer_.set_grad_mode(false);
    const Size channels = statistics_shape_[1];
    const std::vector<Size> row = {{0, 1}, channels};
    const auto as_row = [&](ValueId id) {
      return writer_.add("aten::view", {tensor(id), {graph::ArgumentList{integer(1), {channels}}}},
                         row, Dtype::kF32);
    };
    const Size twice{2 * count_.per_sample, 2 * (count_.fixed - 1)};
    const ValueId half = writer_.add_like("aten::div.Scalar", {tensor(squares), {twice}}, squares);
    const ValueId d = as_row(writer_.add_like("aten::sqrt", {tensor(half)}, half));
    const ValueId middle = as_row(mean);
    const ValueId below =
        writer_.add_like("aten::sub.Tensor", {tensor(middle), tensor(d), integer(1)}, middle);
    const ValueId above =
        writer_.add_like("aten::add.Tensor", {tensor(middle), tensor(d), integer(1)}, middle);
    const std::vector<Size> two = {{0, 2}, channels};
    const ValueId rows =
        writer_.add("aten::cat", {{graph::ArgumentList{tensor(below), tensor(above)}}, integer(0)},
                    two, Dtype::kF32);
    Node running = node_;
    running.inputs[0] = tensor(rows);
    running.inputs[kWeight] = running.inputs[kBias] = {};
    if (at_.residual >= 0) running.inputs[at_.residual] = {};
    if (at_.relu >= 0) running.inputs[at_.relu] = {false};
    running.flags.grad_mode = false;
    running.autocast = {};
    graph::Value made{.producer = node_.id, .dtype = Dtype::kF32, .shape = two, .strides = {}};
    made.strides = natural_strides(two);
    made.storage_id = values_.fresh_storage();
    running.outputs = {values_.add_value(std::move(made))};
    values_.graph().nodes.push_back(std::move(running));
    writer_.set_grad_mode(node_.flags.grad_mode);
  }

  PartValues& values_;
  const Node& node_;
  const TileRule& rule_;
  const NormPositions& at_;
  NodeWriter writer_;
  Size count_ = {0, 1};  ///< n: elements that a statistic is of.
  std::vector<Size>
      statistics_shape_;  ///< [1, C, 1, 1] of a batch norm, [B, C, 1, 1] of an instance norm.
};

}  // namespace

void add_tiled_norm(PartValues& values, const Node& node, const TileRule& rule,
                    const NormTiles& tiles) {
  NormWriter(values, node, rule).run(tiles);
}

}  // namespace trireme::sharding
