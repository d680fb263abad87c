#include "trireme/engine/pipeline/mailbox.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/pipeline/message.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::pipeline {
namespace {

constexpr transport::Tag kChannelTags = transport::Tag{1} << 60;  // the highest bit is the groups'

using schedule::ChannelKind;

bool is_tie(const schedule::Channel& channel) {
  return channel.kind == ChannelKind::kTieGradient || channel.kind == ChannelKind::kTieValue;
}

std::size_t held_bytes_of(const at::Tensor& message) {
  return message.defined() ? message.nbytes() : 0;
}

}  // namespace

Mailbox::Mailbox(const schedule::StepProgram& program, int rank, transport::Endpoint& endpoint,
                 transport::WatchOptions watch)
    : endpoint_(endpoint), watch_(std::move(watch)), inboxes_(program.channels.size()) {
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const schedule::Channel& channel = program.channels[c];
    const int peer = channel.from_rank == rank ? channel.to_rank : channel.from_rank;
    channels_.emplace_back(endpoint, peer, kChannelTags + c);
  }
  for (const schedule::Operation& operation : program.ranks[rank]) {
    if (operation.kind != schedule::OperationKind::kRecv) continue;
    if (is_tie(program.channels[operation.channel])) continue;
    inboxes_[operation.channel].microbatches.push_back(operation.microbatch);
  }
}

void Mailbox::post(int channel) {
  Inbox& inbox = inboxes_[channel];
  if (is_own(channel) || inbox.num_posted == inbox.num_messages) return;
  const auto message = std::make_shared<at::Tensor>();
  const transport::WorkPtr work = channels_[channel].recv([message](std::size_t bytes) {
    *message = make_message(bytes);
    return std::span(static_cast<std::byte*>(message->mutable_data_ptr()), bytes);
  });
  inbox.posted.push_back({work, message});
  ++inbox.num_posted;
}

void Mailbox::wait(transport::Work& work, int channel, const ErrorContext& place) {
  transport::await(transport::message_work(work, endpoint_, channels_[channel].peer()), watch_,
                   place);
}

void Mailbox::begin_step(const std::function<bool(int microbatch)>& has) {
  most_held_bytes_ = 0;
  for (std::size_t c = 0; c < inboxes_.size(); ++c) {
    inboxes_[c].num_messages =
        static_cast<int>(std::ranges::count_if(inboxes_[c].microbatches, has));
    inboxes_[c].num_posted = 0;
    inboxes_[c].own.clear();
    for (int i = 0; i < schedule::kReceivedAhead; ++i) post(static_cast<int>(c));
  }
}

at::Tensor Mailbox::take(int channel, const ErrorContext& place) {
  Inbox& inbox = inboxes_[channel];
  if (is_own(channel)) {
    TRIREME_CHECK(!inbox.own.empty(), "a stage takes from another of its rank before that sends");
    at::Tensor message = std::move(inbox.own.front());
    inbox.own.pop_front();
    return message;
  }
  wait(*inbox.posted.front().work, channel, place);
  note_held();
  at::Tensor message = std::move(*inbox.posted.front().message);
  inbox.posted.pop_front();
  post(channel);
  return message;
}

void Mailbox::send(int channel, at::Tensor message) {
  if (is_own(channel)) {
    inboxes_[channel].own.push_back(std::move(message));
    return note_held();
  }
  drop_received();
  const std::span bytes(static_cast<const std::byte*>(message.const_data_ptr()), message.nbytes());
  sent_.push_back({channels_[channel].send(bytes), std::move(message), channel});
  note_held();
}

void Mailbox::make_room(int channel, int most, const ErrorContext& place) {
  const auto is_of = [channel](const Sent& sent) { return sent.channel == channel; };
  for (drop_received(); std::ranges::count_if(sent_, is_of) >= most; drop_received()) {
    const transport::WorkPtr oldest = std::ranges::find_if(sent_, is_of)->work;
    wait(*oldest, channel, place);
  }
}

void Mailbox::note_held() { most_held_bytes_ = std::max(most_held_bytes_, held_bytes()); }

std::int64_t Mailbox::held_bytes() const {
  std::size_t bytes = 0;
  for (const Sent& sent : sent_) bytes += held_bytes_of(sent.message);
  for (const Inbox& inbox : inboxes_) {
    for (const at::Tensor& message : inbox.own) bytes += held_bytes_of(message);
    for (const Posted& posted : inbox.posted) {
      // Only then does the endpoint's thread no longer write it. One that failed may have no memory.
      if (posted.work->is_done()) bytes += held_bytes_of(*posted.message);
    }
  }
  return static_cast<std::int64_t>(bytes);
}

void Mailbox::take_into(int channel, std::span<std::byte> memory, const ErrorContext& place) {
  const auto work = channels_[channel].recv([memory](std::size_t bytes) {
    if (bytes != memory.size()) {
      throw Error(ErrorKind::kCorruptData, "a message has " + std::to_string(bytes) +
                                               " bytes, expected " + std::to_string(memory.size()));
    }
    return memory;
  });
  wait(*work, channel, place);
}

void Mailbox::send_from(int channel, std::span<const std::byte> memory) {
  sent_.push_back({channels_[channel].send(memory), {}, channel});
}

void Mailbox::drop_received() {
  std::erase_if(sent_, [](const Sent& sent) { return sent.work->is_done(); });
}

void Mailbox::flush(const ErrorContext& place) {
  while (!sent_.empty()) {
    wait(*sent_.front().work, sent_.front().channel, place);
    sent_.pop_front();
  }
}

}  // namespace trireme::pipeline
