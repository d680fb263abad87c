// Sums over memory that all ranks see. Four ways, the same bits:
//
//     in slots    every rank writes its few bytes beside its announcement and combines all: one
//     step one-shot    a piece after the other: all write theirs, all combine all (two ranks)
//     shared      nothing is staged: rank i combines part i of all buffers into all of them
//     two-shot    a piece after the other: all write theirs, rank i combines part i for all, all
//                 take the other parts (three ranks and more: less to read for each)
//
// A half of the staging area is written again two pieces later. By then all ranks have done with
// it: they say that they have staged the piece in between only after that.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/host/host_rank.h"

namespace trireme::collectives {
namespace {

using Bytes = std::span<std::byte>;

constexpr int kTwoShotRanks = 3;

void copy(Bytes from, Bytes to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

Bytes data_piece(Bytes data, std::size_t begin) {
  return data.subspan(begin, std::min(Arena::kPieceBytes, data.size() - begin));
}

/// What rank `index` of so many combines.
Bytes part_of(Bytes bytes, int size, int index, std::size_t element_bytes) {
  const Chunk chunk =
      chunk_of(static_cast<std::int64_t>(bytes.size() / element_bytes), size, index);
  return bytes.subspan(static_cast<std::size_t>(chunk.begin) * element_bytes,
                       static_cast<std::size_t>(chunk.size()) * element_bytes);
}

/// Some of this rank's data that is staged at a time.
struct Piece {
  Bytes data;
  std::int64_t number;  ///< Of all pieces that were staged: says in which half.
};

/// What a rank does with a piece in the two-shot way.
struct TwoShot {
  const Arena& arena;
  int rank;
  const kernels::Reduction& reduction;

  std::size_t element_bytes() const { return size_bytes(reduction.dtype); }

  Bytes part(Bytes bytes, int index) const {
    return part_of(bytes, arena.num_ranks(), index, element_bytes());
  }

  Bytes staged_part(int of_rank, const Piece& piece, int index) const {
    const Bytes half = arena.piece(of_rank, static_cast<int>(piece.number % 2));
    return part(half.first(piece.data.size()), index);
  }

  void stage(const Piece& piece) const {
    for (int i = 0; i < arena.num_ranks(); ++i) {
      if (i != rank) copy(part(piece.data, i), staged_part(rank, piece, i));
    }
  }

  /// Into the data and to where the others look for it.
  void combine_own_part(const Piece& piece) const {
    const Bytes own = part(piece.data, rank);
    std::vector<const std::byte*> sources;
    for (int i = 0; i < arena.num_ranks(); ++i) {
      sources.push_back(i == rank ? own.data() : staged_part(i, piece, rank).data());
    }
    const std::array targets = {own.data(), staged_part(rank, piece, rank).data()};
    kernels::combine(reduction, sources, targets,
                     static_cast<std::int64_t>(own.size() / element_bytes()));
  }

  void take_other_parts(const Piece& piece) const {
    for (int i = 0; i < arena.num_ranks(); ++i) {
      if (i != rank) copy(staged_part(i, piece, i), part(piece.data, i));
    }
  }
};

}  // namespace

void HostRank::begin_all_reduce(const kernels::Reduction& reduction, std::size_t bytes) {
  begin({.operation = Operation::kAllReduce,
         .dtype = reduction.dtype,
         .reduce = reduction.op,
         .count = static_cast<std::int64_t>(bytes / size_bytes(reduction.dtype))});
}

void HostRank::all_reduce(const kernels::Reduction& reduction, Bytes data) {
  begin_all_reduce(reduction, data.size());
  if (data.size() <= Arena::kSlotBytes) {
    reduce_in_slots(reduction, data);
  } else if (size() < kTwoShotRanks) {
    reduce_one_shot(reduction, data);
  } else {
    reduce_two_shot(reduction, data);
  }
  ++sequence_;
}

void HostRank::all_reduce_shared(const kernels::Reduction& reduction,
                                 std::span<const Bytes> buffers) {
  begin_all_reduce(reduction, buffers[rank_].size());
  meet();
  compare();
  std::vector<std::byte*> parts;
  for (const Bytes buffer : buffers) {
    parts.push_back(part_of(buffer, size(), rank_, size_bytes(reduction.dtype)).data());
  }
  const std::vector<const std::byte*> sources(parts.begin(), parts.end());
  const Bytes own = part_of(buffers[rank_], size(), rank_, size_bytes(reduction.dtype));
  kernels::combine(reduction, sources, parts,
                   static_cast<std::int64_t>(own.size() / size_bytes(reduction.dtype)));
  meet();
  ++sequence_;
}

void HostRank::reduce_in_slots(const kernels::Reduction& reduction, Bytes data) {
  const int turn = static_cast<int>(sequence_ % 2);
  copy(data, arena_.payload(rank_, turn));
  meet();
  compare();
  std::vector<const std::byte*> sources;
  for (int i = 0; i < size(); ++i) sources.push_back(arena_.payload(i, turn).data());
  std::byte* target = data.data();
  kernels::combine(reduction, sources, {&target, 1},
                   static_cast<std::int64_t>(data.size() / size_bytes(reduction.dtype)));
}

void HostRank::reduce_one_shot(const kernels::Reduction& reduction, Bytes data) {
  for (std::size_t begin = 0; begin < data.size(); begin += Arena::kPieceBytes) {
    const Bytes piece = data_piece(data, begin);
    const int turn = static_cast<int>(num_pieces_++ % 2);
    copy(piece, arena_.piece(rank_, turn));
    meet();
    if (begin == 0) compare();
    std::vector<const std::byte*> sources;
    for (int i = 0; i < size(); ++i) sources.push_back(arena_.piece(i, turn).data());
    sources[rank_] = piece.data();
    std::byte* target = piece.data();
    kernels::combine(reduction, sources, {&target, 1},
                     static_cast<std::int64_t>(piece.size() / size_bytes(reduction.dtype)));
  }
}

void HostRank::reduce_two_shot(const kernels::Reduction& reduction, Bytes data) {
  const TwoShot hops{arena_, rank_, reduction};
  hops.stage({data_piece(data, 0), num_pieces_});
  for (std::size_t begin = 0; begin < data.size(); begin += Arena::kPieceBytes) {
    const Piece piece{data_piece(data, begin), num_pieces_++};
    meet();
    if (begin == 0) compare();
    hops.combine_own_part(piece);
    arrive();
    // While others still combine this one.
    const std::size_t next = begin + Arena::kPieceBytes;
    if (next < data.size()) hops.stage({data_piece(data, next), num_pieces_});
    wait_for_all();
    hops.take_other_parts(piece);
  }
}

}  // namespace trireme::collectives
