#include "trireme/engine/pipeline/mailbox.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/engine/pipeline/message.h"
#include "trireme/wire/transport/late.h"

namespace trireme::pipeline {
namespace {

constexpr transport::Tag kChannelTags = transport::Tag{1} << 60;  // the highest bit is the groups'

using schedule::ChannelKind;

bool is_tie(const schedule::Channel& channel) {
  return channel.kind == ChannelKind::kTieGradient || channel.kind == ChannelKind::kTieValue;
}

ErrorContext context_of(const Place& place, const std::vector<int>& missing) {
  ErrorContext context{.rank = place.rank, .operation = place.operation, .step = place.step};
  if (!missing.empty()) context.peer = missing.front();
  if (place.microbatch >= 0) context.microbatch = place.microbatch;
  return context;
}

std::string waiting_text(const Place& place, const std::vector<int>& missing,
                         std::chrono::milliseconds waited) {
  std::string text = "has waited " + std::to_string(waited.count() / 1000) + " s in '" +
                     place.operation + "' of step " + std::to_string(place.step);
  if (place.microbatch >= 0) text += ", microbatch " + std::to_string(place.microbatch);
  return missing.empty() ? text : text + " for " + transport::ranks_text(missing);
}

}  // namespace

Awaited message_work(transport::Work& work, transport::Endpoint& endpoint, int peer) {
  return {.work = work, .endpoint = endpoint, .missing = [peer] { return std::vector{peer}; }};
}

void await(const Awaited& awaited, const WatchOptions& watch, const Place& place) {
  using std::chrono::milliseconds;
  const milliseconds deadline = watch.deadline + awaited.grace;
  const auto next = [&](milliseconds waited) {
    return std::min(watch.warn_after, deadline - waited);
  };
  try {
    for (milliseconds waited{0}; !awaited.work.wait_for(next(waited));) {
      waited += next(waited);
      const std::vector<int> missing = awaited.missing();
      const std::string text = waiting_text(place, missing, waited);
      if (waited >= deadline) {
        Error late(ErrorKind::kTimeout, "rank " + std::to_string(place.rank) + " " + text);
        transport::give_up(awaited.work, awaited.endpoint, late.add(context_of(place, missing)));
      }
      watch.logger.warning(text);
    }
  } catch (Error& error) {
    error.add(context_of(place, awaited.missing()));
    throw;
  }
}

Mailbox::Mailbox(const schedule::StepProgram& program, int rank, transport::Endpoint& endpoint,
                 WatchOptions watch)
    : endpoint_(endpoint), watch_(std::move(watch)), inboxes_(program.channels.size()) {
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const schedule::Channel& channel = program.channels[c];
    const int peer = channel.from_rank == rank ? channel.to_rank : channel.from_rank;
    channels_.emplace_back(endpoint, peer, kChannelTags + c);
  }
  for (const schedule::Operation& operation : program.ranks[rank]) {
    if (operation.kind != schedule::OperationKind::kRecv) continue;
    if (!is_tie(program.channels[operation.channel])) ++inboxes_[operation.channel].num_messages;
  }
}

void Mailbox::post(int channel) {
  Inbox& inbox = inboxes_[channel];
  if (inbox.num_posted == inbox.num_messages) return;
  const auto message = std::make_shared<at::Tensor>();
  const transport::WorkPtr work = channels_[channel].recv([message](std::size_t bytes) {
    *message = make_message(bytes);
    return std::span(static_cast<std::byte*>(message->mutable_data_ptr()), bytes);
  });
  inbox.posted.push_back({work, message});
  ++inbox.num_posted;
}

void Mailbox::wait(transport::Work& work, int channel, const Place& place) {
  await(message_work(work, endpoint_, channels_[channel].peer()), watch_, place);
}

void Mailbox::begin_step() {
  for (std::size_t c = 0; c < inboxes_.size(); ++c) {
    inboxes_[c].num_posted = 0;
    for (int i = 0; i < kAhead; ++i) post(static_cast<int>(c));
  }
}

at::Tensor Mailbox::take(int channel, const Place& place) {
  Inbox& inbox = inboxes_[channel];
  wait(*inbox.posted.front().work, channel, place);
  at::Tensor message = std::move(*inbox.posted.front().message);
  inbox.posted.pop_front();
  post(channel);
  return message;
}

void Mailbox::send(int channel, at::Tensor message) {
  drop_received();
  const std::span bytes(static_cast<const std::byte*>(message.const_data_ptr()), message.nbytes());
  sent_.push_back({channels_[channel].send(bytes), std::move(message), channel});
}

void Mailbox::take_into(int channel, std::span<std::byte> memory, const Place& place) {
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

void Mailbox::flush(const Place& place) {
  while (!sent_.empty()) {
    wait(*sent_.front().work, sent_.front().channel, place);
    sent_.pop_front();
  }
}

}  // namespace trireme::pipeline
