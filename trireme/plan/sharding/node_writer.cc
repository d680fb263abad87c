#include "trireme/plan/sharding/node_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/sizes.h"

namespace trireme::sharding {

using graph::Argument;
using graph::ArgumentList;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;

namespace {

bool grows_with_batch(const Argument& argument) {
  if (const auto* size = std::get_if<Size>(&argument.content)) return !size->is_fixed();
  if (const auto* real = std::get_if<graph::Real>(&argument.content)) return real->per_sample != 0;
  const auto* list = std::get_if<ArgumentList>(&argument.content);
  return list != nullptr && std::ranges::any_of(*list, grows_with_batch);
}

/// Of the operators that are written here.
bool is_view(std::string_view op) {
  return op == "aten::unsqueeze" || op == "aten::squeeze" || op == "aten::select" ||
         op == "aten::slice" || op == "aten::view";
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kF64 || dtype == Dtype::kF16 ||
         dtype == Dtype::kBf16;
}

}  // namespace

NodeWriter::NodeWriter(PartValues& values, const Node& like)
    : values_(values), like_(like), grad_mode_(like.flags.grad_mode) {}

ValueId NodeWriter::add(const std::string& op, ArgumentList inputs, std::vector<Size> shape,
                        Dtype dtype) {
  Value value{.dtype = dtype, .shape = std::move(shape), .strides = {}};
  value.strides = natural_strides(value.shape);
  value.storage_id = values_.fresh_storage();
  const ValueId output = values_.add_value(std::move(value));
  add_onto(output, op, std::move(inputs));
  const Node& node = values_.graph().nodes.back();
  for (const ValueId input : graph::input_values(node)) {
    Value& made = values_.value(output);
    made.is_ragged = made.is_ragged || values_.value(input).is_ragged;
    made.requires_grad = made.requires_grad || (values_.value(input).requires_grad && grad_mode_ &&
                                                is_floating(made.dtype));
  }
  return output;
}

ValueId NodeWriter::in_f32(ValueId id) {
  if (value(id).dtype == Dtype::kF32) return id;
  return add("aten::to.dtype", {tensor(id), {Dtype::kF32}, {false}, {false}, {}}, value(id).shape,
             Dtype::kF32);
}

ValueId NodeWriter::add_like(const std::string& op, ArgumentList inputs, ValueId like) {
  return add(op, std::move(inputs), values_.value(like).shape, values_.value(like).dtype);
}

void NodeWriter::add_onto(ValueId output, const std::string& op, ArgumentList inputs) {
  const std::size_t dot = op.find('.');
  Node node{.id = values_.fresh_node(),
            .name = like_.name + "/" + op.substr(op.find("::") + 2),
            .op = op.substr(0, dot),
            .overload = dot == std::string::npos ? "" : op.substr(dot + 1),
            .inputs = std::move(inputs),
            .outputs = {output},
            .output_lists = {-1},
            .writes = {},
            .flags = {.grad_mode = grad_mode_},
            .autocast = {}};
  node.flags.batch_dependent = std::ranges::any_of(node.inputs, grows_with_batch);
  if (is_view(node.op)) {
    node.flags.view = true;
    values_.value(output).storage_id = values_.value(graph::input_values(node).front()).storage_id;
  }
  values_.value(output).source = graph::ValueSource::kNode;
  values_.value(output).producer = node.id;
  values_.graph().nodes.push_back(std::move(node));
}

ValueId NodeWriter::add_over_shards(std::string_view function, const PartValues::Ids& partial) {
  Value whole = values_.value(partial.front());
  whole.storage_id = values_.fresh_storage();
  whole.requires_grad = whole.requires_grad && grad_mode_;
  Node& node = values_.add_opaque(like_, function, partial);
  node.flags.grad_mode = grad_mode_;
  node.output_lists = {1};
  whole.producer = node.id;
  const ValueId output = values_.add_value(std::move(whole));
  node.outputs = {output};
  return output;
}

ValueId NodeWriter::add_rows(ValueId from, int dim, RowRange wanted) {
  std::vector<Size> shape = value(from).shape;
  if (wanted == RowRange{0, shape[dim].fixed}) return from;
  const std::vector<Size> strides = value(from).strides;
  shape[dim].fixed = wanted.size();
  const ValueId rows =
      add("aten::slice.Tensor",
          {tensor(from), integer(dim), integer(wanted.begin), integer(wanted.end), integer(1)},
          shape, value(from).dtype);
  values_.value(rows).strides = strides;
  return rows;
}

ValueId NodeWriter::add_padding(ValueId from, int dim, std::pair<std::int64_t, std::int64_t> rows,
                                double fill) {
  if (rows.first == 0 && rows.second == 0) return from;
  Value padded = value(from);
  set_rows(padded, dim, padded.shape[dim].fixed + rows.first + rows.second);
  // From the last dimension on.
  std::vector<std::int64_t> amounts(2 * (padded.shape.size() - static_cast<std::size_t>(dim)));
  amounts[amounts.size() - 2] = rows.first;
  amounts[amounts.size() - 1] = rows.second;
  const ValueId made =
      add("aten::constant_pad_nd", {tensor(from), integers(amounts), {graph::Real{0, fill}}},
          padded.shape, padded.dtype);
  values_.value(made).strides = padded.strides;
  return made;
}

Argument integers(const std::vector<std::int64_t>& numbers) {
  ArgumentList list;
  for (const std::int64_t number : numbers) list.push_back(integer(number));
  return {std::move(list)};
}

}  // namespace trireme::sharding
