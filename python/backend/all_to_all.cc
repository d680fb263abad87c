#include <numeric>
#include <string>
#include <utility>

#include "python/backend/lending.h"

namespace trireme::backend {
namespace {

using collectives::Group;

/// By rank: rows of `tensor` as bytes.
std::vector<std::span<std::byte>> rows_of(const at::Tensor& tensor,
                                          std::span<const std::int64_t> splits, int size,
                                          const char* what) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  std::vector<std::int64_t> counts(splits.begin(), splits.end());
  if (counts.empty()) {
    if (rows % size != 0) {
      refuse_call(std::string("all_to_all_single: ") + std::to_string(rows) + " rows of the " +
                  what + " are no equal parts for " + std::to_string(size) +
                  " ranks; give split sizes");
    }
    counts.assign(static_cast<std::size_t>(size), rows / size);
  }
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (std::ssize(counts) != size || sum != rows) {
    refuse_call(std::string("all_to_all_single: ") + std::to_string(counts.size()) +
                " split sizes of the " + what + " with " + std::to_string(sum) +
                " rows; expected one for each of " + std::to_string(size) + " ranks, " +
                std::to_string(rows) + " rows together");
  }
  const std::span<std::byte> all = bytes_of(tensor);
  const std::size_t row_bytes = rows == 0 ? 0 : all.size() / static_cast<std::size_t>(rows);
  std::vector<std::span<std::byte>> parts;
  std::size_t begin = 0;
  for (const std::int64_t count : counts) {
    parts.push_back(all.subspan(begin, static_cast<std::size_t>(count) * row_bytes));
    begin += parts.back().size();
  }
  return parts;
}

}  // namespace

Call all_to_all(RankGroup& group, Timeout timeout, const Tensors& outputs, const Tensors& inputs) {
  check_count(outputs.size(), group, "outputs of an all_to_all");
  check_count(inputs.size(), group, "inputs of an all_to_all");
  Call call{.results = outputs};
  Outgoing all;
  Incoming own;
  collectives::Sends sends;
  collectives::Receives receives;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_same_dtype(outputs[i], inputs[i], "all_to_all");
    sends.push_back(all.bytes(inputs[i]));
    receives.push_back(own.place(outputs[i]));
  }
  all.give_to(call);
  own.give_to(call);
  call.works = {group.start(timeout, [&](Group& wire) {
    return wire.all_to_all(std::move(sends), std::move(receives));
  })};
  return call;
}

Call all_to_all_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                       const at::Tensor& input, std::span<const std::int64_t> output_splits,
                       std::span<const std::int64_t> input_splits) {
  check_same_dtype(output, input, "all_to_all_single");
  Call call{.results = {output}};
  const at::Tensor from = plain(input);
  const at::Tensor to = plain_like(output);
  call.lent = {from, to};
  if (!to.is_same(output)) call.after = [to, output] { output.copy_(to); };
  const auto sent = rows_of(from, input_splits, group.size(), "input");
  auto received = rows_of(to, output_splits, group.size(), "output");
  call.works = {group.start(timeout, [&](Group& wire) {
    return wire.all_to_all(collectives::Sends(sent.begin(), sent.end()), std::move(received));
  })};
  return call;
}

}  // namespace trireme::backend
