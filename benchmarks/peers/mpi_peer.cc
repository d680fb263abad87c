// One rank of an MPI library, for `trireme bench wire`.
//
//   mpirun -n RANKS mpi_peer FOLDER      FOLDER: pipes of the ranks

#include <mpi.h>

#include <cstdio>
#include <exception>

#include "benchmarks/wire/rank_loop.h"

namespace trireme::bench {
namespace {

class MpiContender final : public Contender {
 public:
  MpiContender() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks_);
  }

  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }

  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override {
    if (one.dtype != Dtype::kF32 && one.dtype != Dtype::kF64) return std::nullopt;
    // Ours reduces in place too.
    const bool reduces_part = one.operation == Collective::kReduceScatter;
    const bool is_in_place = buffers.recv.empty() || reduces_part;
    const int all = static_cast<int>(one.count());
    return Prepared{.run = runner(one, buffers, all),
                    .result = reduces_part  ? buffers.send.first(buffers.recv.size())
                              : is_in_place ? buffers.send
                                            : buffers.recv,
                    .first = reduces_part ? std::int64_t{all / num_ranks_} * rank_ : 0};
  }

  std::optional<std::span<std::byte>> registered(std::size_t) override { return std::nullopt; }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  // Errors end the process: that is MPI's default for a communicator.
  std::function<void()> runner(const Case& one, const Buffers& buffers, int all) const {
    MPI_Datatype const type = one.dtype == Dtype::kF32 ? MPI_FLOAT : MPI_DOUBLE;
    const int part = all / num_ranks_;
    void* const send = buffers.send.data();
    void* const recv = buffers.recv.data();
    switch (one.operation) {
      case Collective::kAllReduce:
        return [=] { MPI_Allreduce(MPI_IN_PLACE, send, all, type, MPI_SUM, MPI_COMM_WORLD); };
      case Collective::kReduceScatter:
        return [=] {
          MPI_Reduce_scatter_block(MPI_IN_PLACE, send, part, type, MPI_SUM, MPI_COMM_WORLD);
        };
      case Collective::kAllGather:
        return [=] { MPI_Allgather(send, part, type, recv, part, type, MPI_COMM_WORLD); };
      case Collective::kAllToAll:
        return [=] { MPI_Alltoall(send, part, type, recv, part, type, MPI_COMM_WORLD); };
      case Collective::kBroadcast:
        return [=] { MPI_Bcast(send, all, type, 0, MPI_COMM_WORLD); };
      default:
        return [] { MPI_Barrier(MPI_COMM_WORLD); };
    }
  }

  int rank_ = 0;
  int num_ranks_ = 1;
};

}  // namespace
}  // namespace trireme::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpirun -n RANKS %s FOLDER; `trireme bench wire` starts it\n",
                 argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  try {
    trireme::bench::MpiContender contender;
    trireme::bench::take_orders(argv[1], contender);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_peer: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
