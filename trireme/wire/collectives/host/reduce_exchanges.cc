// clang-format off
// Reductions over staged or shared memory. The same bits, whichever way:
//
//     one-shot        all stage a piece, all combine all of it: least waiting (few ranks, few bytes)
//     two-shot        all stage a piece, rank i combines part i for all, all take the other parts:
//                     less to read for each
//     reduce_scatter  all stage a slice of each rank's part, each combines its own
//     shared          nothing is staged: rank i combines part i of all buffers, where they are, into
//                     all of them
// clang-format on

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/host/exchange.h"

namespace trireme::collectives {
namespace {

/// What the three have in common.
class Reducing : public Exchange {
 public:
  Reducing(const ArenaView& view, const Request& request)
      : view_(view),
        data_(request.data),
        reduction_{request.data.dtype, request.description.reduce},
        root_(request.description.operation == Collective::kReduce ? request.description.root
                                                                   : -1) {}

  void hear(int turn) override {
    scales_ = scales_of(view_, reduction_.op, turn);
    reduction_.scales = scales_;
  }

  std::span<const std::byte> sharable() const override { return data_.bytes; }

 protected:
  int rank() const { return view_.rank; }
  int size() const { return view_.size(); }
  Bytes data() const { return data_.bytes; }
  Bytes half_of(int rank, int half) const { return view_.arena.piece(rank, half); }

  /// Whether this rank wants the whole result.
  bool wants_all() const { return root_ < 0 || root_ == rank(); }
  int root() const { return root_; }  ///< -1: every rank is one.

  Bytes part_of(Bytes bytes, int index) const {
    return Elements(bytes, data_.dtype)
        .part(chunk_of(Elements(bytes, data_.dtype).count(), size(), index))
        .bytes;
  }

  void combine_into(std::span<std::byte* const> targets, std::span<const std::byte* const> sources,
                    std::size_t bytes) const {
    kernels::combine(reduction_, sources, targets,
                     static_cast<std::int64_t>(bytes / size_bytes(data_.dtype)));
  }

 private:
  ArenaView view_;
  Elements data_;
  kernels::ElementReduction reduction_;
  std::vector<double> scales_;
  int root_;
};

/// Part i of every buffer, combined by rank i into all of them, or into the root's.
class AllReducing : public Reducing {
 public:
  using Reducing::Reducing;

  std::int64_t num_pieces() const override { return num_slices(data().size(), kPiece); }

  void share(std::span<const Bytes> by_rank) override {
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> targets;
    for (int i = 0; i < size(); ++i) {
      std::byte* part = part_of(by_rank[i], rank()).data();
      sources.push_back(part);
      if (root() < 0 || root() == i) targets.push_back(part);
    }
    combine_into(targets, sources, part_of(data(), rank()).size());
  }

 protected:
  static constexpr std::size_t kPiece = Arena::kPieceBytes;
};

class OneShot final : public AllReducing {
 public:
  using AllReducing::AllReducing;

  void stage(std::int64_t piece, int half, Way way) override {
    if (root() == rank()) return;  // nobody reads it
    copy_in(slice_of(data(), piece, kPiece), half_of(rank(), half), way);
  }

  void take(std::int64_t piece, int half) override {
    if (!wants_all()) return;
    const Bytes own = slice_of(data(), piece, kPiece);
    std::vector<const std::byte*> sources;
    for (int i = 0; i < size(); ++i) {
      sources.push_back(i == rank() ? own.data() : half_of(i, half).data());
    }
    combine_into(std::array{own.data()}, sources, own.size());
  }
};

class TwoShot final : public AllReducing {
 public:
  using AllReducing::AllReducing;

  bool combines_for_all() const override { return true; }

  void stage(std::int64_t piece, int half, Way way) override {
    const Bytes own = slice_of(data(), piece, kPiece);
    for (int i = 0; i < size(); ++i) {
      if (i != rank()) copy_in(part_of(own, i), staged_part(rank(), half, own.size(), i), way);
    }
  }

  /// Into the data and to where the others look for it.
  void combine(std::int64_t piece, int half) override {
    const Bytes slice = slice_of(data(), piece, kPiece);
    const Bytes own = part_of(slice, rank());
    const Bytes staged = staged_part(rank(), half, slice.size(), rank());
    std::vector<const std::byte*> sources;
    for (int i = 0; i < size(); ++i) {
      const Bytes part = i == rank() ? own : staged_part(i, half, slice.size(), rank());
      sources.push_back(part.data());
    }
    const std::array targets = {staged.data(), own.data()};
    combine_into(std::span(targets).first(wants_all() ? 2 : 1), sources, own.size());
  }

  void take(std::int64_t piece, int half) override {
    if (!wants_all()) return;
    const Bytes slice = slice_of(data(), piece, kPiece);
    for (int i = 0; i < size(); ++i) {
      if (i != rank()) copy(staged_part(i, half, slice.size(), i), part_of(slice, i));
    }
  }

 private:
  Bytes staged_part(int of_rank, int half, std::size_t bytes, int index) const {
    return part_of(half_of(of_rank, half).first(bytes), index);
  }
};

class ReduceScatter final : public Reducing {
 public:
  ReduceScatter(const ArenaView& view, const Request& request)
      : Reducing(view, request), staging_(view.arena) {
    for (const Chunk& part : request.parts) parts_.push_back(request.data.part(part).bytes);
    for (const Bytes part : parts_) longest_ = std::max(longest_, part.size());
    result_ = request.result.empty() ? parts_[rank()] : request.result;
  }

  std::int64_t num_pieces() const override { return num_slices(longest_, staging_.slice()); }

  void stage(std::int64_t piece, int half, Way way) override {
    for (int i = 0; i < size(); ++i) {
      if (i != rank())
        copy_in(slice_of(parts_[i], piece, staging_.slice()), staging_.place(rank(), half, i), way);
    }
  }

  void take(std::int64_t piece, int half) override {
    const Bytes own = slice_of(parts_[rank()], piece, staging_.slice());
    if (own.empty()) return;
    std::vector<const std::byte*> sources;
    for (int i = 0; i < size(); ++i) {
      sources.push_back(i == rank() ? own.data() : staging_.place(i, half, rank()).data());
    }
    combine_into(std::array{slice_of(result_, piece, staging_.slice()).data()}, sources,
                 own.size());
  }

  void share(std::span<const Bytes> by_rank) override {
    const Bytes own = parts_[rank()];
    if (own.empty()) return;
    const auto offset = static_cast<std::size_t>(own.data() - data().data());
    std::vector<const std::byte*> sources;
    for (const Bytes buffer : by_rank) sources.push_back(buffer.data() + offset);
    combine_into(std::array{result_.data()}, sources, own.size());
  }

 private:
  SlicedStaging staging_;
  std::vector<Bytes> parts_;
  Bytes result_;  ///< Of this rank's part.
  std::size_t longest_ = 0;
};

}  // namespace

std::vector<double> scales_of(const ArenaView& view, kernels::ReduceOp op, int turn) {
  std::vector<double> scales;
  if (op != kernels::ReduceOp::kScaledSum) return scales;
  for (int i = 0; i < view.size(); ++i) {
    scales.push_back(scale_in(view.arena.header(i, turn)));
  }
  return scales;
}

std::unique_ptr<Exchange> make_one_shot(const ArenaView& view, const Request& request) {
  return std::make_unique<OneShot>(view, request);
}

std::unique_ptr<Exchange> make_two_shot(const ArenaView& view, const Request& request) {
  return std::make_unique<TwoShot>(view, request);
}

std::unique_ptr<Exchange> make_reduce_scatter(const ArenaView& view, const Request& request) {
  return std::make_unique<ReduceScatter>(view, request);
}

}  // namespace trireme::collectives
