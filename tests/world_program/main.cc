// Collectives of trireme::World in processes that run_ranks starts; exits with 0 where all is right.

#include <ATen/Functions.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "trireme/collectives.h"
#include "trireme/error.h"

namespace {

void expect(bool is_true, const char* what) {
  if (!is_true) throw std::runtime_error(what);
}

void check(trireme::World& world, int num_ranks) {
  expect(world.size() == num_ranks, "size");
  const auto mine = at::full({3}, world.rank() + 1, at::kFloat);
  const double all = num_ranks * (num_ranks + 1) / 2.0;

  at::Tensor sum = mine.clone();
  world.all_reduce(sum);
  expect(at::equal(sum, at::full({3}, all, at::kFloat)), "all_reduce: sum");
  at::Tensor average = mine.clone();
  world.all_reduce(average, trireme::Reduction::kAverage);
  expect(at::allclose(average, sum / num_ranks), "all_reduce: average");
  at::Tensor most = mine.clone();
  world.all_reduce(most, trireme::Reduction::kMax);
  expect(at::equal(most, at::full({3}, num_ranks, at::kFloat)), "all_reduce: max");

  at::Tensor last = mine.clone();
  world.broadcast(last, num_ranks - 1);
  expect(at::equal(last, most), "broadcast");

  const at::Tensor gathered = world.all_gather(mine);
  expect(gathered.sizes() == at::IntArrayRef({num_ranks, 3}), "all_gather: shape");
  for (int rank = 0; rank < num_ranks; ++rank) {
    expect(at::equal(gathered[rank], at::full({3}, rank + 1, at::kFloat)), "all_gather: values");
  }
  try {
    world.all_reduce(at::ones({4, 4}).t());
    expect(false, "a tensor that is not dense was taken");
  } catch (const trireme::Error& error) {
    expect(error.kind() == trireme::ErrorKind::kInvalidArgument, "kind of the refusal");
  }
  world.barrier();
  if (world.rank() == 0) std::printf("all right\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int num_ranks = std::atoi(argv[1]);
  const bool fails = argc > 2 && std::string(argv[2]) == "fails";
  return trireme::run_ranks(argc, argv, num_ranks, [&](trireme::World& world) {
    check(world, num_ranks);
    if (fails && world.rank() == 1) throw std::runtime_error("rank 1 gives up");
    world.barrier();
  });
}
