#include "python/backend/collectives.h"

#include <ATen/ATen.h>

#include <numeric>
#include <utility>

#include "python/backend/lending.h"

namespace trireme::backend {
namespace {

using collectives::Group;

/// The memory of tensors that lie one behind the other, as one; nothing where they do not.
std::optional<std::span<std::byte>> adjacent(const Tensors& tensors) {
  std::span<std::byte> all;
  for (const at::Tensor& tensor : tensors) {
    if (!is_plain(tensor)) return std::nullopt;
    const std::span<std::byte> own = bytes_of(tensor);
    if (own.empty()) continue;
    if (all.empty()) {
      all = own;
    } else if (own.data() == all.data() + all.size()) {
      all = {all.data(), all.size() + own.size()};
    } else {
      return std::nullopt;
    }
  }
  return all;
}

std::vector<std::int64_t> bytes_of_each(const Tensors& tensors) {
  std::vector<std::int64_t> bytes;
  for (const at::Tensor& tensor : tensors)
    bytes.push_back(static_cast<std::int64_t>(tensor.nbytes()));
  return bytes;
}

std::int64_t numel_of(const Tensors& tensors) {
  std::int64_t numel = 0;
  for (const at::Tensor& tensor : tensors) numel += tensor.numel();
  return numel;
}

/// To each tensor its elements of `flat`, in order.
void spread(const at::Tensor& flat, const Tensors& targets) {
  std::int64_t begin = 0;
  for (const at::Tensor& target : targets) {
    target.copy_(flat.narrow(0, begin, target.numel()).view(target.sizes()));
    begin += target.numel();
  }
}

collectives::Elements elements_of(const Reducible& reducible) {
  return {bytes_of(reducible.memory), reducible.dtype};
}

/// input: the elements for all ranks, `counts` of them for each, as the tensor's dtype counts.
Call scatter_sums(RankGroup& group, Timeout timeout, const at::Tensor& output,
                  const Reducible& input, std::vector<std::int64_t> counts) {
  const std::int64_t numel = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t per_element = numel == 0 ? 1 : input.memory.numel() / numel;  // complex: 2
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] *= per_element;
    if (i < static_cast<std::size_t>(group.rank())) begin += counts[i];
  }
  const std::int64_t count = counts[static_cast<std::size_t>(group.rank())];
  const at::Tensor place = input.memory.view({-1}).narrow(0, begin, count);
  const bool is_in_place = place.data_ptr() == output.data_ptr();
  const bool is_ready = is_plain(output) && output.scalar_type() == input.memory.scalar_type();
  at::Tensor own = place;
  if (!is_in_place) own = is_ready ? output.view({-1}) : at::empty({count}, place.options());
  Call call{.after = [=, finish = input.finish] { finish(own, output); },
            .results = {output},
            .lent = {input.memory, own}};
  call.works = {group.start(timeout, [&](Group& wire) {
    if (is_in_place) return wire.reduce_scatter(elements_of(input), counts, input.by);
    return wire.reduce_scatter(elements_of(input), counts, input.by, bytes_of(own));
  })};
  return call;
}

}  // namespace

Call together(std::vector<Call> calls) {
  Call all;
  std::vector<After> afters;
  for (Call& call : calls) {
    all.works.insert(all.works.end(), call.works.begin(), call.works.end());
    all.results.insert(all.results.end(), call.results.begin(), call.results.end());
    all.lent.insert(all.lent.end(), call.lent.begin(), call.lent.end());
    if (call.after) afters.push_back(std::move(call.after));
  }
  if (!afters.empty()) {
    all.after = [afters = std::move(afters)] {
      for (const After& after : afters) after();
    };
  }
  return all;
}

Call all_reduce(RankGroup& group, Timeout timeout, const Tensors& tensors, collectives::Reduce by) {
  std::vector<Reducible> all;
  Call call{.results = tensors};
  for (const at::Tensor& tensor : tensors) {
    check_sendable(tensor, "all_reduce");
    all.push_back(make_reducible(tensor, by, group.size()));
    call.lent.push_back(all.back().memory);
  }
  call.works = group.start(timeout, [&](Group& wire) {
    std::vector<transport::WorkPtr> works;
    for (const Reducible& one : all) works.push_back(wire.all_reduce(elements_of(one), one.by));
    return works;
  });
  call.after = [all = std::move(all), tensors] {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].finish(all[i].memory, tensors[i]);
  };
  return call;
}

Call reduce(RankGroup& group, Timeout timeout, const at::Tensor& tensor, int root,
            collectives::Reduce by) {
  check_sendable(tensor, "reduce");
  const Reducible one = make_reducible(tensor, by, group.size());
  Call call{.results = {tensor}, .lent = {one.memory}};
  call.works = {group.start(
      timeout, [&](Group& wire) { return wire.reduce(elements_of(one), root, one.by); })};
  if (root == group.rank()) call.after = [one, tensor] { one.finish(one.memory, tensor); };
  return call;
}

Call broadcast(RankGroup& group, Timeout timeout, const at::Tensor& tensor, int root) {
  check_sendable(tensor, "broadcast");
  Call call{.results = {tensor}};
  const at::Tensor memory = root == group.rank() ? plain(tensor) : plain_like(tensor);
  call.lent.push_back(memory);
  if (root != group.rank() && !memory.is_same(tensor)) {
    call.after = [memory, tensor] { tensor.copy_(memory); };
  }
  call.works = {
      group.start(timeout, [&](Group& wire) { return wire.broadcast(bytes_of(memory), root); })};
  return call;
}

Call all_gather(RankGroup& group, Timeout timeout, const Tensors& outputs,
                const at::Tensor& input) {
  check_count(outputs.size(), group, "outputs of an all_gather");
  for (const at::Tensor& output : outputs) check_same_dtype(output, input, "all_gather");
  check_numel(input.numel(), outputs[static_cast<std::size_t>(group.rank())].numel(),
              "input of an all_gather");
  Call call{.results = outputs};
  Outgoing mine;
  const std::span<const std::byte> own = mine.bytes(input);
  mine.give_to(call);
  std::optional<std::span<std::byte>> all = adjacent(outputs);
  if (!all) {
    const at::Tensor flat = at::empty({numel_of(outputs)}, input.options());
    call.after = [flat, outputs] { spread(flat, outputs); };
    call.lent.push_back(flat);
    all = bytes_of(flat);
  }
  call.works = {group.start(
      timeout, [&](Group& wire) { return wire.all_gather(own, *all, bytes_of_each(outputs)); })};
  return call;
}

Call all_gather_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                       const at::Tensor& input) {
  check_same_dtype(output, input, "all_gather_into_tensor");
  check_numel(output.numel(), input.numel() * group.size(), "output of an all_gather_into_tensor");
  Call call{.results = {output}};
  Outgoing mine;
  Incoming all;
  const std::span<const std::byte> own = mine.bytes(input);
  const std::span<std::byte> memory = all.place(output);
  mine.give_to(call);
  all.give_to(call);
  call.works = {group.start(timeout, [&](Group& wire) { return wire.all_gather(own, memory); })};
  return call;
}

Call gather(RankGroup& group, Timeout timeout, const Tensors& outputs, const at::Tensor& input,
            int root) {
  check_sendable(input, "gather");
  Call call{.results = outputs};
  Outgoing mine;
  Incoming all;
  collectives::Receives receives;
  if (root == group.rank()) check_count(outputs.size(), group, "outputs of a gather");
  for (const at::Tensor& output : outputs) {
    check_same_dtype(output, input, "gather");
    receives.push_back(all.place(output));
  }
  const std::span<const std::byte> own = mine.bytes(input);
  mine.give_to(call);
  all.give_to(call);
  call.works = {group.start(
      timeout, [&](Group& wire) { return wire.gather(own, std::move(receives), root); })};
  return call;
}

Call scatter(RankGroup& group, Timeout timeout, const at::Tensor& output, const Tensors& inputs,
             int root) {
  check_sendable(output, "scatter");
  Call call{.results = {output}};
  Outgoing all;
  Incoming mine;
  collectives::Sends sends;
  if (root == group.rank()) check_count(inputs.size(), group, "inputs of a scatter");
  for (const at::Tensor& input : inputs) {
    check_same_dtype(output, input, "scatter");
    sends.push_back(all.bytes(input));
  }
  const std::span<std::byte> own = mine.place(output);
  all.give_to(call);
  mine.give_to(call);
  call.works = {
      group.start(timeout, [&](Group& wire) { return wire.scatter(std::move(sends), own, root); })};
  return call;
}

Call reduce_scatter(RankGroup& group, Timeout timeout, const at::Tensor& output,
                    const Tensors& inputs, collectives::Reduce by) {
  check_count(inputs.size(), group, "inputs of a reduce_scatter");
  std::vector<std::int64_t> counts;
  Tensors flat;
  for (const at::Tensor& input : inputs) {
    check_same_dtype(output, input, "reduce_scatter");
    counts.push_back(input.numel());
    flat.push_back(input.reshape({-1}));
  }
  check_numel(output.numel(), counts[static_cast<std::size_t>(group.rank())],
              "output of a reduce_scatter");
  const Reducible all = make_reducible(at::cat(flat), by, group.size());
  return scatter_sums(group, timeout, output, all, std::move(counts));
}

Call reduce_scatter_single(RankGroup& group, Timeout timeout, const at::Tensor& output,
                           const at::Tensor& input, collectives::Reduce by) {
  check_same_dtype(output, input, "reduce_scatter_tensor");
  check_numel(input.numel(), output.numel() * group.size(), "input of a reduce_scatter_tensor");
  const Reducible all = make_reducible(input, by, group.size());
  return scatter_sums(
      group, timeout, output, all,
      std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), output.numel()));
}

Call barrier(RankGroup& group, Timeout timeout) {
  return {.works = {group.start(timeout, [](Group& wire) { return wire.barrier(); })}};
}

Call send(RankGroup& group, const at::Tensor& tensor, int peer, int tag) {
  check_sendable(tensor, "send");
  const at::Tensor memory = plain(tensor);
  Call call{.results = {tensor}, .lent = {memory}};
  call.works = {group.start(std::nullopt, [&](Group& wire) {
    return wire.send(peer, bytes_of(memory),
                     {.tag = static_cast<std::uint64_t>(tag), .dtype = label_of(tensor)});
  })};
  return call;
}

Call recv(RankGroup& group, const at::Tensor& tensor, int source, int tag) {
  check_sendable(tensor, "recv");
  Call call{.results = {tensor}};
  Incoming own;
  const std::span<std::byte> memory = own.place(tensor);
  own.give_to(call);
  call.recv = group.start(std::nullopt, [&](Group& wire) {
    return wire.recv(source, memory,
                     {.tag = static_cast<std::uint64_t>(tag), .dtype = label_of(tensor)});
  });
  call.works = {call.recv};
  return call;
}

}  // namespace trireme::backend
