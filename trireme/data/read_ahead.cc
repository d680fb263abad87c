#include "trireme/data/read_ahead.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
constexpr std::int64_t kGapBytes = 4096;  // that is read for nothing sooner than by two requests
constexpr std::size_t kMostWanted = std::size_t{1} << 22;
constexpr int kMostAgain = 100;  // times that a request is said to be asked again

}  // namespace

/// Part of a file that is read by one request.
struct ReadAhead::Piece {
  enum class State : std::uint8_t { kQueued, kReading, kRead, kFailed };

  int file = 0;
  std::int64_t begin = 0, end = 0;  ///< Of its records.
  std::int64_t call = 0;            ///< That wanted it.
  std::int64_t num_claims = 0;
  State state = State::kQueued;

  std::int64_t first = 0;  ///< Where the buffer begins, in the file.
  std::int64_t num_read = 0;
  int num_again = 0;
  std::uint64_t id = 0;
  std::shared_ptr<const Descriptor> opened;
  AlignedBuffers::Lease buffer;

  bool is_waiting() const { return state == State::kQueued || state == State::kReading; }
};

ReadAhead::ReadAhead(const ReadAheadLimits& limits, std::unique_ptr<ReadQueue> queue, Open open)
    : limits_(limits),
      open_(std::move(open)),
      buffers_(limits.alignment, limits.max_bytes),
      queue_(std::move(queue)),
      reading_(static_cast<std::size_t>(limits.num_in_flight)) {
  for (std::size_t id = reading_.size(); id > 0; --id) free_ids_.push_back(id - 1);
  added_.reserve(reading_.size());
}

ReadAhead::~ReadAhead() {
  if (!process_.is_here()) {
    // Its end would wait for threads of the parent that wait for it, which a child does not have.
    [[maybe_unused]] const auto* left = changed_.release();
    return;
  }
  std::unique_lock lock(mutex_);
  while (num_begun_ > 0) wait_for_any(lock);
}

void ReadAhead::want(std::vector<RecordExtent> records) {
  if (!process_.is_here()) return;
  const std::scoped_lock lock(mutex_);
  if (!failure_.empty()) return;
  std::erase_if(records, [&](const auto& record) { return claims_.contains(record.record); });
  if (records.empty()) return;
  ++call_;
  wanting_ = std::this_thread::get_id();
  if (claims_.size() + records.size() > kMostWanted) forget_before(call_);
  std::ranges::sort(records, {}, [](const auto& r) { return std::pair(r.file, r.begin); });
  PiecePtr last;
  for (const RecordExtent& record : records) add_piece(record, last);
  start(nullptr);
}

void ReadAhead::add_piece(const RecordExtent& record, PiecePtr& last) {
  const bool is_near = last && last->file == record.file && record.begin - last->end <= kGapBytes &&
                       record.end - last->begin <= kPieceBytes;
  if (!is_near) {
    last = std::make_shared<Piece>();
    last->file = record.file;
    last->begin = record.begin;
    last->call = call_;
    queued_.push_back(last);
  }
  last->end = std::max(last->end, record.end);
  const bool is_new =
      claims_.try_emplace(record.record, Claim{last, record.begin, record.end}).second;
  if (is_new) ++last->num_claims;
}

/// Whether a piece may be begun that nobody waits for.
bool ReadAhead::has_room(const Piece& piece) const {
  const auto bytes = static_cast<std::int64_t>(buffers_.size_of(length_of(piece)));
  return !free_ids_.empty() && (num_bytes_ == 0 || num_bytes_ + bytes <= limits_.max_bytes);
}

/// Of its aligned place.
std::size_t ReadAhead::length_of(const Piece& piece) const {
  const auto alignment = static_cast<std::int64_t>(limits_.alignment);
  const std::int64_t first = piece.begin / alignment * alignment;
  return static_cast<std::size_t>((piece.end - first + alignment - 1) / alignment * alignment);
}

/// Begins `first`, and what is queued where the calling thread is the one that wants: the system lets a thread end only when
/// all that it has begun has ended, and threads that merely take are made for a microbatch.
void ReadAhead::start(const PiecePtr& first) {
  if (!failure_.empty()) return;
  if (first && !free_ids_.empty()) begin(first);  // and it is passed over below
  const bool begins_all = wanting_ == std::this_thread::get_id();
  while (begins_all && !queued_.empty() && has_room(*queued_.front())) {
    const PiecePtr piece = std::move(queued_.front());
    queued_.pop_front();
    if (piece->state == Piece::State::kQueued) begin(piece);
  }
  if (added_.empty()) return;
  try {
    const int begun = queue_->submit();
    added_.erase(added_.begin(), added_.begin() + begun);
    num_begun_ += begun;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void ReadAhead::begin(const PiecePtr& piece) {
  const auto alignment = static_cast<std::int64_t>(limits_.alignment);
  piece->first = piece->begin / alignment * alignment;
  try {
    piece->opened = open_(piece->file);
    piece->buffer = buffers_.get(length_of(*piece));
  } catch (const Error&) {
    piece->state = Piece::State::kFailed;  // who reads the record finds out again
    return;
  }
  piece->state = Piece::State::kReading;
  piece->id = free_ids_.back();
  free_ids_.pop_back();
  reading_[piece->id] = piece;
  num_bytes_ += std::ssize(piece->buffer.bytes());
  add_request(piece);
}

void ReadAhead::add_request(const PiecePtr& piece) {
  const auto whole = piece->buffer.bytes().first(length_of(*piece));
  queue_->add({.id = piece->id,
               .descriptor = piece->opened->number(),
               .begin = piece->first + piece->num_read,
               .to = whole.subspan(static_cast<std::size_t>(piece->num_read))});
  added_.push_back(piece);
}

ReadAhead::Bytes ReadAhead::take(std::int64_t record) {
  if (!process_.is_here()) return {};
  std::unique_lock lock(mutex_);
  const auto found = claims_.find(record);
  if (found == claims_.end()) return {};
  const Claim claim = std::move(found->second);
  claims_.erase(found);
  leave(*claim.piece);
  wait_for(claim.piece, lock);
  // Rarely: each submission is a system call.
  const bool is_much_free =
      free_ids_.size() * 4 >= reading_.size() && num_bytes_ * 4 <= limits_.max_bytes * 3;
  if (!queued_.empty() && is_much_free) start(nullptr);
  if (claim.piece->state == Piece::State::kFailed) return {};
  const auto begin = static_cast<std::size_t>(claim.begin - claim.piece->first);
  return {.owner = claim.piece,
          .bytes = claim.piece->buffer.bytes().subspan(
              begin, static_cast<std::size_t>(claim.end - claim.begin))};
}

/// A claim is gone.
void ReadAhead::leave(Piece& piece) {
  --piece.num_claims;
  if (piece.num_claims > 0 || piece.state != Piece::State::kRead) return;
  num_bytes_ -= std::ssize(piece.buffer.bytes());
}

void ReadAhead::wait_for(const PiecePtr& piece, std::unique_lock<std::mutex>& lock) {
  if (piece->state == Piece::State::kQueued) forget_before(piece->call);
  while (piece->is_waiting()) {
    const bool is_queued = piece->state == Piece::State::kQueued;
    if (is_queued || !added_.empty()) start(is_queued ? piece : nullptr);
    if (piece->is_waiting()) wait_for_any(lock);
  }
}

/// Waits until some have ended, or for a moment where none could be begun.
void ReadAhead::wait_for_any(std::unique_lock<std::mutex>& lock) {
  if (is_waited_) {
    changed_->wait(lock);
    return;
  }
  if (num_begun_ == 0) {
    if (++num_idle_ > limits_.most_idle_ms) {
      return give_up("the system has had no memory for reads by io_uring for " +
                     std::to_string(limits_.most_idle_ms) + " ms");
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
    return;
  }
  num_idle_ = 0;
  std::vector<ReadQueue::Completion> completions;
  is_waited_ = true;
  lock.unlock();
  std::string failure;
  try {
    completions = queue_->wait();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  is_waited_ = false;
  for (const ReadQueue::Completion& completion : completions) settle(completion);
  if (!failure.empty()) {
    give_up(failure);
    abandon_begun();
  }
  changed_->notify_all();
}

/// The queue has failed, and is not used again but to wait for what it has begun. What it has not is not there.
void ReadAhead::give_up(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  for (const PiecePtr& piece : std::exchange(queued_, {})) {
    if (piece->state == Piece::State::kQueued) piece->state = Piece::State::kFailed;
  }
  for (const PiecePtr& piece : std::exchange(added_, {})) end(*piece, false);
  changed_->notify_all();
}

/// Nobody will hear of what was begun. The system may still write into its memory, which nobody gets again.
void ReadAhead::abandon_begun() {
  for (const PiecePtr& piece : std::vector(reading_)) {
    if (!piece) continue;
    piece->buffer.abandon();
    end(*piece, false);
  }
  num_begun_ = 0;
}

void ReadAhead::settle(const ReadQueue::Completion& completion) {
  --num_begun_;
  const PiecePtr piece = reading_[completion.id];
  const int result = completion.result;
  if (result == -EAGAIN || result == -EINTR) {
    const bool gives_up = !failure_.empty() || ++piece->num_again > kMostAgain;
    return gives_up ? end(*piece, false) : add_request(piece);
  }
  piece->num_read += std::max(result, 0);
  if (result > 0 && piece->first + piece->num_read >= piece->end) return end(*piece, true);
  // A read that ends early goes on; but for the file's end, which comes at any byte.
  const bool goes_on = result > 0 && failure_.empty() &&
                       piece->num_read % static_cast<std::int64_t>(limits_.alignment) == 0;
  return goes_on ? add_request(piece) : end(*piece, false);
}

void ReadAhead::end(Piece& piece, bool is_read) {
  piece.state = is_read ? Piece::State::kRead : Piece::State::kFailed;
  piece.opened.reset();
  free_ids_.push_back(piece.id);
  if (!is_read || piece.num_claims == 0) num_bytes_ -= std::ssize(piece.buffer.bytes());
  if (!is_read) piece.buffer.reset();
  reading_[piece.id] = nullptr;  // last: it may be what keeps the piece
}

/// What calls before this one wanted is not wanted any more.
void ReadAhead::forget_before(std::int64_t call) {
  if (call <= forgotten_call_) return;
  forgotten_call_ = call;
  std::erase_if(claims_, [&](auto& item) {
    Piece& piece = *item.second.piece;
    if (piece.call >= call) return false;
    leave(piece);
    return true;
  });
  std::erase_if(queued_, [](const PiecePtr& piece) { return piece->num_claims == 0; });
}

std::string ReadAhead::failure() const {
  if (!process_.is_here()) return "a child by fork has no part in its parent's requests";
  const std::scoped_lock lock(mutex_);
  return failure_;
}

std::int64_t ReadAhead::num_bytes() const {
  const std::scoped_lock lock(mutex_);
  return num_bytes_;
}

}  // namespace trireme::data
