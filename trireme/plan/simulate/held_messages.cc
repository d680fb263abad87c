#include "trireme/plan/simulate/held_messages.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/causes.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/stage_cost.h"

// Nobody is stopped from sending: a sender keeps a message until the receiver has taken it. How
// many that can be follows from the order alone (schedule/causes.h). Stage 0 of two, `interleaved`:
//
//     0F0 0F1 | 0B0 ...      after 0F1, stage 1 need not have begun: two values are held.
//                            0B0 has waited for 1B0, so 1F0 has taken the first: one is left.

namespace trireme::simulate {
namespace {

using schedule::Causes;
using schedule::ChannelKind, schedule::kMessageHeaderBytes, schedule::kReceivedAhead;

/// The messages of one kind between two stages: the same in each microbatch.
struct Stream {
  ChannelKind kind = ChannelKind::kValue;
  int from = 0;
  int to = 0;
  std::vector<std::int64_t> bytes;  ///< Of a microbatch's messages, in order.
  std::int64_t total = 0;

  /// Of the `count` messages from the beginning of a microbatch on.
  std::int64_t next(std::int64_t count) const {
    const auto each = static_cast<std::int64_t>(bytes.size());
    std::int64_t sum = count / each * total;
    for (std::int64_t i = 0; i < count % each; ++i) sum += bytes[i];
    return sum;
  }
};

class Holder {
 public:
  Holder(const Causes& causes, const std::vector<SentBytes>& sent, int rank)
      : causes_(causes), rank_(rank) {
    std::map<std::tuple<ChannelKind, int, int>, Stream> streams;
    for (const auto& [message, bytes] : sent) {
      if (!is_here(message.from_stage) && !is_here(message.to_stage)) continue;
      Stream& stream = streams[{message.kind, message.from_stage, message.to_stage}];
      stream.kind = message.kind;
      stream.from = message.from_stage;
      stream.to = message.to_stage;
      stream.bytes.push_back(bytes + kMessageHeaderBytes);
      stream.total += bytes + kMessageHeaderBytes;
    }
    for (auto& [path, stream] : streams) streams_.push_back(std::move(stream));
  }

  std::vector<HeldMessages> by_action() const {
    const int num_actions = causes_.num_actions(rank_);
    std::vector<HeldMessages> held(static_cast<std::size_t>(num_actions));
    for (const Stream& stream : streams_) {
      const bool sends = is_here(stream.from), receives = is_here(stream.to);
      std::vector<int> most_sent;
      if (receives) most_sent = causes_.most_sent(stream.from, stream.kind, stream.to);
      if (receives && !sends && num_actions > 0)
        held[0].before += received(stream, -1, most_sent[0], num_awaited(stream, -1));
      for (int i = 0; i < num_actions; ++i) {
        if (sends && receives) {
          held[i].during += kept(stream, i, i);
          held[i].after += kept(stream, i + 1, i);
        } else if (sends) {
          held[i].during += sent(stream, i, i);
          held[i].after += sent(stream, i + 1, i);
        } else {
          held[i].during += received(stream, i, most_sent[i], 0);
          held[i].after += received(stream, i, most_sent[i + 1], num_awaited(stream, i));
        }
      }
    }
    return held;
  }

 private:
  bool is_here(int stage) const { return causes_.rank_of(stage) == rank_; }

  /// What the rank's first `num_actions` have sent to another of its stages and its actions up to `index` have not
  /// taken.
  std::int64_t kept(const Stream& stream, int num_actions, int index) const {
    const int taken = causes_.num_taking(stream.to, stream.kind, index + 1);
    const int left = causes_.num_taking(stream.from, stream.kind, num_actions) - taken;
    return std::max(left, 0) * stream.total;
  }

  /// What the rank has sent in its first `num_actions` and the receiver need not have taken when
  /// the action `index` begins.
  std::int64_t sent(const Stream& stream, int num_actions, int index) const {
    const int done = causes_.done_before(causes_.rank_of(stream.to), rank_, index);
    const int taken = causes_.num_taking(stream.to, stream.kind, done);
    return (causes_.num_taking(stream.from, stream.kind, num_actions) - taken) * stream.total;
  }

  /// What can have come, of `num_sent` microbatches, and has not been taken for the actions up to
  /// `index`; `num_awaited` more messages are asked for than the rank takes in by itself.
  std::int64_t received(const Stream& stream, int index, int num_sent,
                        std::int64_t num_awaited) const {
    const int taken = causes_.num_taking(stream.to, stream.kind, index + 1);
    const std::int64_t there = std::max(num_sent - taken, 0) * std::ssize(stream.bytes);
    return stream.next(std::min(there, kReceivedAhead + num_awaited));
  }

  /// Messages of the stream that the rank's action after `index` waits for.
  std::int64_t num_awaited(const Stream& stream, int index) const {
    if (index + 1 == causes_.num_actions(rank_)) return 0;
    const int taken = causes_.num_taking(stream.to, stream.kind, index + 2) -
                      causes_.num_taking(stream.to, stream.kind, index + 1);
    return taken * std::ssize(stream.bytes);
  }

  const Causes& causes_;
  int rank_;
  std::vector<Stream> streams_;
};

std::vector<SentBytes> sent_bytes(const graph::Graph& planned, const layout::Plan& plan) {
  std::vector<SentBytes> sent;
  for (const layout::Crossing& crossing : layout::crossings(planned, plan)) {
    const graph::Value& value = planned.values[crossing.value];
    const std::vector<int>& chain = crossing.stages;
    for (std::size_t i = 1; i < chain.size(); ++i) {
      sent.push_back({{ChannelKind::kValue, chain[0], chain[i], crossing.value},
                      span_bytes(value, plan.batch.microbatch)});
      if (!crossing.has_gradient) continue;
      sent.push_back({{ChannelKind::kGradient, chain[i], chain[i - 1], crossing.value},
                      graph::bytes_at(value, plan.batch.microbatch)});
    }
  }
  std::sort(sent.begin(), sent.end(),
            [](const SentBytes& a, const SentBytes& b) { return a.message < b.message; });
  return sent;
}

}  // namespace

std::vector<HeldMessages> held_messages(const Causes& causes, const std::vector<SentBytes>& sent,
                                        int rank) {
  return Holder(causes, sent, rank).by_action();
}

std::vector<HeldMessages> messages_of_replicas(const std::vector<HeldMessages>& held,
                                               int num_replicas) {
  std::vector<HeldMessages> all;
  std::int64_t before = held.empty() ? 0 : held.front().before;
  for (const HeldMessages& one : held) {
    for (int r = 0; r < num_replicas; ++r) {
      const std::int64_t others = r * one.after + (num_replicas - 1 - r) * before;
      all.push_back({others + one.during, others + one.after, num_replicas * one.before});
    }
    before = one.after;
  }
  return all;
}

std::vector<std::vector<HeldMessages>> held_messages(const graph::Graph& planned,
                                                     const layout::Plan& plan) {
  const std::vector<SentBytes> sent = sent_bytes(planned, plan);
  std::vector<schedule::Message> messages;
  for (const SentBytes& one : sent) messages.push_back(one.message);
  const Causes causes(schedule::schedule_of(plan), messages);
  std::vector<std::vector<HeldMessages>> held;
  for (int rank = 0; rank < layout::train_role(plan).mesh.pipeline; ++rank) {
    held.push_back(held_messages(causes, sent, rank));
  }
  return held;
}

}  // namespace trireme::simulate
