// Messages that the receiver reads in the sender's process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"
#include "trireme/wire/endpoint/tcp/peer.h"
#include "trireme/wire/system/byte_form.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using internal::Frame;
using internal::FrameKind;
using internal::Peer;
using testing::HasSubstr;

std::vector<std::byte> counted_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

std::uint64_t address_of(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<std::uint64_t>(bytes.data());
}

/// A copy of this process that does nothing.
class IdleChild {
 public:
  IdleChild() : process_(fork()) {
    if (process_ > 0) return;
    while (true) pause();
  }
  ~IdleChild() { end(); }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  pid_t process() const { return process_; }

  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

TEST(ProcessMemory, IsThatOfTheOtherProcess) {
  const std::vector<std::byte> before = counted_bytes(1'000'000);
  std::vector<std::byte> bytes = before;
  IdleChild child;
  const pid_t process = child.process();
  std::ranges::fill(bytes, std::byte{0});  // here, not there
  const auto memory = ProcessMemory::open(process);
  if (!memory) GTEST_SKIP() << "the kernel forbids reading another process";
  std::vector<std::byte> read(bytes.size());
  EXPECT_EQ(memory->read(address_of(bytes), read), 0);
  EXPECT_EQ(read, before);
  EXPECT_EQ(memory->read(4096, read), EFAULT);
  child.end();
  EXPECT_EQ(memory->read(address_of(bytes), read), ESRCH);
  EXPECT_FALSE(ProcessMemory::open(process));
}

TEST(ProcessMemory, OfNobodyIsNotOpened) {
  EXPECT_FALSE(ProcessMemory::open(0));
  EXPECT_FALSE(ProcessMemory::open(-1));
}

/// Two ranks of this process, their connection served by hand.
class ReadingPeers : public testing::Test {
 protected:
  ReadingPeers() {
    const auto memory = ProcessMemory::open(getpid());
    if (!memory) return;
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    // Each tells the other that it can read.
    const internal::PeerContext context{notes, domains, nullptr, memory};
    sender.emplace(1, Descriptor(ends[0]), context);    // in rank 0
    receiver.emplace(0, Descriptor(ends[1]), context);  // in rank 1
    for (Peer* peer : {&*sender, &*receiver}) peer->write();
    for (Peer* peer : {&*sender, &*receiver}) peer->read();
  }

  void SetUp() override {
    if (!sender) GTEST_SKIP() << "the kernel forbids reading this process";
  }

  PendingWorkPtr post_recv() {
    auto work = std::make_shared<PendingWork>(failure);
    receiver->post_recv(5, {[this](std::size_t bytes) {
                              received.resize(bytes);
                              return std::span(received);
                            },
                            nullptr, work});
    receiver->write();
    return work;
  }

  PendingWorkPtr post_send(std::span<const std::byte> data) {
    auto work = std::make_shared<PendingWork>(failure);
    sender->post_send(5, {data, {}, work});
    sender->write();
    return work;
  }

  std::shared_ptr<Failure> failure = std::make_shared<Failure>();
  NoteBoard notes;
  DomainBoard domains{failure};
  std::optional<Peer> sender, receiver;
  std::vector<std::byte> received;
};

TEST_F(ReadingPeers, ReadLargeMessagesAndAnswer) {
  const std::vector<std::byte> message = counted_bytes(1'000'000);
  const PendingWorkPtr taken = post_recv();
  sender->read();  // the credit
  const PendingWorkPtr sent = post_send(message);
  EXPECT_FALSE(sent->is_done());
  receiver->read();
  EXPECT_TRUE(taken->is_done());
  EXPECT_EQ(received, message);
  EXPECT_FALSE(sent->is_done());  // until it knows
  receiver->write();
  sender->read();
  EXPECT_TRUE(sent->is_done());
  EXPECT_FALSE(sender->has_work() || receiver->has_work());
}

TEST_F(ReadingPeers, WriteSmallOnes) {
  const PendingWorkPtr taken = post_recv();
  sender->read();
  EXPECT_TRUE(post_send(counted_bytes(1000))->is_done());
  receiver->read();
  EXPECT_TRUE(taken->is_done());
}

TEST_F(ReadingPeers, WhatCannotBeReadIsToldUnlessTheConnectionSaysMore) {
  const std::span<const std::byte> nowhere(reinterpret_cast<const std::byte*>(4096), 100'000);
  const PendingWorkPtr taken = post_recv();
  sender->read();
  const PendingWorkPtr sent = post_send(nowhere);
  receiver->read();
  EXPECT_FALSE(taken->is_done());
  EXPECT_TRUE(receiver->has_work());
  receiver->check();  // not yet
  EXPECT_LE(receiver->next_check(), std::chrono::steady_clock::now() + 1s);
  std::this_thread::sleep_until(receiver->next_check());
  const Error lost = trireme::test::error_of([&] { receiver->check(); });
  EXPECT_EQ(lost.kind(), ErrorKind::kIo);
  EXPECT_EQ(lost.context().peer, 0);
  EXPECT_THAT(lost.message(), HasSubstr("cannot read a message of 100000 bytes in the process of "
                                        "rank 0: Bad address"));
  std::vector<PendingWorkPtr> works;
  sender->abandon(error_to_bytes(Error(ErrorKind::kIo, "the cause")), works);
  EXPECT_EQ(works, std::vector<PendingWorkPtr>{sent});
  EXPECT_EQ(trireme::test::error_of([&] { receiver->read(); }).message(), "the cause");
  works.clear();
  receiver->abandon({}, works);
  EXPECT_EQ(works, std::vector<PendingWorkPtr>{taken});
}

// Its memory may hold something else by then.
TEST_F(ReadingPeers, WhatIsNotLentAnyMoreIsNotTaken) {
  const std::vector<std::byte> message = counted_bytes(100'000);
  const PendingWorkPtr taken = post_recv();
  sender->read();
  const PendingWorkPtr sent = post_send(message);
  std::vector<PendingWorkPtr> works;
  sender->abandon(error_to_bytes(Error(ErrorKind::kIo, "the cause")), works);
  EXPECT_EQ(works, std::vector<PendingWorkPtr>{sent});
  EXPECT_EQ(trireme::test::error_of([&] { receiver->read(); }).message(), "the cause");
  EXPECT_FALSE(taken->is_done());
}

TEST_F(ReadingPeers, AnswerNothingAfterWhatCouldNotBeRead) {
  const std::span<const std::byte> nowhere(reinterpret_cast<const std::byte*>(4096), 100'000);
  const std::vector<std::byte> message = counted_bytes(100'000);
  post_recv();
  const PendingWorkPtr second = post_recv();
  sender->read();
  const PendingWorkPtr first_sent = post_send(nowhere), second_sent = post_send(message);
  receiver->read();
  receiver->write();
  sender->read();
  EXPECT_FALSE(first_sent->is_done() || second_sent->is_done() || second->is_done());
}

TEST_F(ReadingPeers, AnswersMustFitTheOffers) {
  const std::vector<std::byte> message = counted_bytes(100'000);
  const PendingWorkPtr taken = post_recv();
  sender->read();
  const PendingWorkPtr sent = post_send(message);
  const auto accept = to_bytes(Frame{.kind = FrameKind::kAccept, .sequence = 2, .offset = 7});
  EXPECT_TRUE(write_some(receiver->socket(), accept));
  const Error error = trireme::test::error_of([&] { sender->read(); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("an answer to what was not offered"));
}

}  // namespace
}  // namespace trireme::transport::test
