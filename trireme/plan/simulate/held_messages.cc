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
  Holder(const Causes& causes, const std::vector<SentBytes>& sent, int stage) : causes_(causes) {
    std::map<std::tuple<ChannelKind, int, int>, Stream> streams;
    for (const auto& [message, bytes] : sent) {
      if (message.from_stage != stage && message.to_stage != stage) continue;
      Stream& stream = streams[{message.kind, message.from_stage, message.to_stage}];
      stream.kind = message.kind;
      stream.from = message.from_stage;
      stream.to = message.to_stage;
      stream.bytes.push_back(bytes + kMessageHeaderBytes);
      stream.total += bytes + kMessageHeaderBytes;
    }
    for (auto& [path, stream] : streams) streams_.push_back(std::move(stream));
  }

  std::vector<HeldMessages> of_stage(int stage) const {
    std::vector<HeldMessages> held(static_cast<std::size_t>(causes_.num_actions(stage)));
    for (const Stream& stream : streams_) {
      std::vector<int> most_sent;
      if (stream.to == stage) most_sent = causes_.most_sent(stream.from, stream.kind, stage);
      for (int i = 0; i < causes_.num_actions(stage); ++i) {
        if (stream.from == stage) {
          held[i].during += sent(stream, i, i);
          held[i].after += sent(stream, i + 1, i);
        }
        if (stream.to == stage) {
          held[i].during += received(stream, i, most_sent[i], 0);
          held[i].after += received(stream, i, most_sent[i + 1], num_awaited(stream, i));
        }
      }
    }
    return held;
  }

 private:
  /// What the stage has sent in its first `num_actions` and the receiver need not have taken when
  /// the action `index` begins.
  std::int64_t sent(const Stream& stream, int num_actions, int index) const {
    const int taken = causes_.num_taking(stream.to, stream.kind,
                                         causes_.done_before(stream.to, stream.from, index));
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

  /// Messages of the stream that the stage's action after `index` waits for.
  std::int64_t num_awaited(const Stream& stream, int index) const {
    if (index + 1 == causes_.num_actions(stream.to)) return 0;
    const int taken = causes_.num_taking(stream.to, stream.kind, index + 2) -
                      causes_.num_taking(stream.to, stream.kind, index + 1);
    return taken * std::ssize(stream.bytes);
  }

  const Causes& causes_;
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
                                        int stage) {
  return Holder(causes, sent, stage).of_stage(stage);
}

std::vector<std::vector<HeldMessages>> held_messages(const graph::Graph& planned,
                                                     const layout::Plan& plan) {
  const std::vector<SentBytes> sent = sent_bytes(planned, plan);
  std::vector<schedule::Message> messages;
  for (const SentBytes& one : sent) messages.push_back(one.message);
  const int num_stages = static_cast<int>(plan.stages.size());
  const std::int64_t microbatches =
      plan.batch.num_microbatches() / layout::train_role(plan).mesh.data;
  const Causes causes(
      schedule::make_schedule(plan.schedule, num_stages, static_cast<int>(microbatches)), messages);
  std::vector<std::vector<HeldMessages>> held;
  for (int stage = 0; stage < num_stages; ++stage) {
    held.push_back(held_messages(causes, sent, stage));
  }
  return held;
}

}  // namespace trireme::simulate
