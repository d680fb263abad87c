// Operations that move bytes between ranks and change none.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/host/exchange.h"

namespace trireme::collectives {
namespace {

constexpr std::size_t kPiece = Arena::kPieceBytes;

/// An operation that can be done by reading alone, where what goes to all lies in one piece.
class Movement : public Exchange {
 public:
  void share(std::span<const Bytes> by_rank) final {
    std::size_t total = 0;
    for (const Move& move : takes()) total += move.to.size();
    for (const Move& move : takes()) {
      copy_out(by_rank[move.from].subspan(move.offset, move.to.size()), move.to, total);
    }
  }

  std::optional<std::vector<Move>> moves() const final {
    return lies_together() ? std::optional(takes()) : std::nullopt;
  }

 private:
  virtual bool lies_together() const { return true; }
  virtual std::vector<Move> takes() const = 0;
};

/// Every rank stages its part; all take the others', and put their own in its place.
class AllGather final : public Movement {
 public:
  AllGather(const ArenaView& view, const Request& request)
      : view_(view), total_(request.data.bytes.size()), mine_(request.mine) {
    for (const Chunk& part : request.parts) parts_.push_back(request.data.part(part).bytes);
    for (const Bytes part : parts_) longest_ = std::max(longest_, part.size());
    if (mine_.empty()) mine_ = own();
  }

  std::int64_t num_pieces() const override { return num_slices(longest_, kPiece); }

  void stage(std::int64_t piece, int half, Way way) override {
    copy_in(slice_of(mine_, piece, kPiece), view_.arena.piece(view_.rank, half), way);
  }

  void take(std::int64_t piece, int half) override {
    if (!is_in_place()) {
      copy_out(slice_of(mine_, piece, kPiece), slice_of(own(), piece, kPiece), total_);
    }
    for_others([&](int i) {
      const Bytes slice = slice_of(parts_[i], piece, kPiece);
      copy_out(view_.arena.piece(i, half).first(slice.size()), slice, total_);
    });
  }

  std::span<const std::byte> sharable() const override { return mine_; }
  std::size_t sharable_bytes(int rank) const override { return parts_[rank].size(); }

 private:
  std::vector<Move> takes() const override {
    std::vector<Move> result;
    if (!is_in_place()) result.push_back({view_.rank, 0, own()});
    for_others([&](int i) { result.push_back({i, 0, parts_[i]}); });
    return result;
  }

  Bytes own() const { return parts_[view_.rank]; }
  bool is_in_place() const { return mine_.data() == own().data(); }

  /// The next rank first, so that not all read from the same one at once.
  template <typename Do>
  void for_others(Do act) const {
    for (int i = 1; i < view_.size(); ++i) act((view_.rank + i) % view_.size());
  }

  ArenaView view_;
  std::size_t total_;
  std::span<const std::byte> mine_;
  std::vector<Bytes> parts_;
  std::size_t longest_ = 0;
};

/// The root stages, the others take.
class Broadcast final : public Movement {
 public:
  Broadcast(const ArenaView& view, const Request& request)
      : view_(view), data_(request.data.bytes), root_(request.description.root) {}

  std::int64_t num_pieces() const override { return num_slices(data_.size(), kPiece); }

  void stage(std::int64_t piece, int half, Way way) override {
    if (is_root()) copy_in(slice_of(data_, piece, kPiece), view_.arena.piece(root_, half), way);
  }

  void take(std::int64_t piece, int half) override {
    if (is_root()) return;
    const Bytes slice = slice_of(data_, piece, kPiece);
    copy_out(view_.arena.piece(root_, half).first(slice.size()), slice, data_.size());
  }

  std::span<const std::byte> sharable() const override { return data_; }

 private:
  std::vector<Move> takes() const override {
    return is_root() ? std::vector<Move>() : std::vector<Move>{{root_, 0, data_}};
  }

  bool is_root() const { return view_.rank == root_; }

  ArenaView view_;
  Bytes data_;
  int root_;
};

/// Every rank stages a slice of what it has for each other; each takes what is for it. Sizes that
/// differ are told first: a row per rank, in its slot.
class AllToAll final : public Movement {
 public:
  AllToAll(const ArenaView& view, const Request& request)
      : view_(view),
        staging_(view.arena),
        sends_(request.sends),
        recvs_(request.recvs),
        is_uniform_(request.description.operation == Collective::kAllToAll &&
                    request.description.count > 0) {
    if (is_uniform_) longest_ = sends_[0].size();
    for (const Bytes part : recvs_) received_bytes_ += part.size();
  }

  bool hears_first() const override { return !is_uniform_; }

  void announce(int turn) override {
    if (is_uniform_) return;
    for (int i = 0; i < size(); ++i) size_said(view_.rank, turn, i, sends_[i].size());
  }

  void hear(int turn) override {
    if (is_uniform_) return;
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const std::size_t bytes = size_heard(from, turn, to);
        longest_ = std::max(longest_, bytes);
        if (to != view_.rank || bytes == recvs_[from].size()) continue;
        throw Error(ErrorKind::kInvalidArgument,
                    "group rank " + std::to_string(from) + " sends " + std::to_string(bytes) +
                        " bytes to group rank " + std::to_string(to) + ", which expects " +
                        std::to_string(recvs_[from].size()) +
                        "; what a rank sends must be what the other expects");
      }
    }
  }

  std::int64_t num_pieces() const override { return num_slices(longest_, staging_.slice()); }

  void stage(std::int64_t piece, int half, Way way) override {
    for (int i = 0; i < size(); ++i) {
      if (i != view_.rank) {
        copy_in(slice_of(sends_[i], piece, staging_.slice()), staging_.place(view_.rank, half, i),
                way);
      }
    }
  }

  void take(std::int64_t piece, int half) override {
    const auto own = static_cast<std::size_t>(view_.rank);
    copy_out(slice_of(sends_[own], piece, staging_.slice()),
             slice_of(recvs_[own], piece, staging_.slice()), received_bytes_);
    for (int step = 1; step < size(); ++step) {
      const int i = (view_.rank + step) % size();
      const Bytes slice = slice_of(recvs_[i], piece, staging_.slice());
      copy_out(staging_.place(i, half, view_.rank).first(slice.size()), slice, received_bytes_);
    }
  }

  /// What goes to all.
  std::span<const std::byte> sharable() const override {
    if (!lies_together()) return {};
    return {sends_[0].data(), sends_[0].size() * static_cast<std::size_t>(size())};
  }

 private:
  /// One buffer with equal parts in rank order.
  bool lies_together() const override {
    if (!is_uniform_) return false;
    for (int i = 0; i < size(); ++i) {
      if (sends_[i].data() != sends_[0].data() + sends_[0].size() * i) return false;
    }
    return true;
  }

  std::vector<Move> takes() const override {
    std::vector<Move> result;
    for (int step = 0; step < size(); ++step) {
      const int i = (view_.rank + step) % size();
      result.push_back({i, longest_ * static_cast<std::size_t>(view_.rank), recvs_[i]});
    }
    return result;
  }

  int size() const { return view_.size(); }

  Bytes cell(int from, int turn, int to) const {
    return view_.arena.payload(from, turn)
        .subspan(sizeof(std::uint64_t) * static_cast<std::size_t>(to), sizeof(std::uint64_t));
  }
  void size_said(int from, int turn, int to, std::uint64_t bytes) const {
    std::memcpy(cell(from, turn, to).data(), &bytes, sizeof bytes);
  }
  std::size_t size_heard(int from, int turn, int to) const {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, cell(from, turn, to).data(), sizeof bytes);
    return bytes;
  }

  ArenaView view_;
  SlicedStaging staging_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<Bytes> recvs_;
  bool is_uniform_;
  std::size_t longest_ = 0;
  std::size_t received_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_all_gather(const ArenaView& view, const Request& request) {
  return std::make_unique<AllGather>(view, request);
}

std::unique_ptr<Exchange> make_broadcast(const ArenaView& view, const Request& request) {
  return std::make_unique<Broadcast>(view, request);
}

std::unique_ptr<Exchange> make_all_to_all(const ArenaView& view, const Request& request) {
  return std::make_unique<AllToAll>(view, request);
}

}  // namespace trireme::collectives
