// Connections over tcp: how their ends are noticed, which way large messages go, and what an owner
// learns that does not ask.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/endpoint/tcp/peer.h"
#include "trireme/wire/system/byte_form.h"
#include "trireme/wire/system/shared_memory.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// ---- Hosts and links that die

TEST(TcpConnection, ADeadHostOrLinkIsAnEnd) {
  for (const int code : {ECONNRESET, EPIPE, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENETDOWN,
                         ECONNABORTED, EHOSTDOWN}) {
    EXPECT_TRUE(is_end_of_connection(code)) << std::strerror(code);
  }
  for (const int code : {ENOTSOCK, EBADF, EFAULT, ENOMEM, EINVAL}) {
    EXPECT_FALSE(is_end_of_connection(code)) << std::strerror(code);
  }
}

int option_of(const Descriptor& socket, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  EXPECT_EQ(::getsockopt(socket.number(), IPPROTO_TCP, option, &value, &size), 0);
  return value;
}

// Whether it is idle or in the middle of sending.
TEST(TcpConnection, NoticesADeadHostWithin10Seconds) {
  const Descriptor listener = listen_on({});
  const Descriptor socket = connect_to(local_address(listener), {});
  set_options_of_connection(socket);
  EXPECT_EQ(option_of(socket, TCP_USER_TIMEOUT), 8'000);
  EXPECT_EQ(option_of(socket, TCP_KEEPIDLE) +
                option_of(socket, TCP_KEEPINTVL) * option_of(socket, TCP_KEEPCNT),
            8);
}

TEST(TcpConnection, ErrorsNameThePeer) {
  NoteBoard notes;
  DomainBoard domains(std::make_shared<Failure>());
  internal::Peer peer(3, Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)),
                      {notes, domains, nullptr, std::nullopt});
  peer.say_goodbye();
  for (const bool is_reading : {true, false}) {
    const Error error = error_of_call([&] { is_reading ? peer.read() : peer.write(); });
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_EQ(error.context().peer, 3);
  }
  // An exception here once ended the process.
  std::vector<PendingWorkPtr> works;
  peer.abandon(error_to_bytes(Error(ErrorKind::kIo, "stop")), works);
  EXPECT_TRUE(peer.knows_failure());
}

// A rank that waited in `shutdown` for a slow one on another host lost it after 7.5 s.
TEST(TcpConnection, WhoHasSaidGoodbyeHearsThatOthersAreAlive) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  NoteBoard notes;
  DomainBoard domains(std::make_shared<Failure>());
  const internal::PeerContext context{notes, domains, nullptr, std::nullopt};
  internal::Peer slow(0, Descriptor(ends[0]), context);   // in rank 1
  internal::Peer early(1, Descriptor(ends[1]), context);  // in rank 0
  slow.say_goodbye();
  slow.write();
  early.read();
  ASSERT_TRUE(early.has_said_goodbye());
  early.tell_alive();
  early.write();
  EXPECT_TRUE(wait_readable(slow.socket(), Clock::now()));
  slow.read();
}

// What is sent is nowhere: who finds out is who has touched it.
TEST(TcpConnection, LargeMessagesInsideAHostAreReadByTheirReceiver) {
  if (!ProcessMemory::open(getpid())) GTEST_SKIP() << "the kernel forbids reading this process";
  const Endpoints endpoints = make_tcp_world(2, {.shares_memory = true});
  const std::span<const std::byte> nowhere(reinterpret_cast<const std::byte*>(4096), 1 << 20);
  std::vector<std::byte> memory;
  const WorkPtr taken = endpoints[1]->recv(0, 5, into(memory));
  const WorkPtr sent = endpoints[0]->send(1, 5, nowhere);
  EXPECT_THAT(error_of(taken).message(), HasSubstr("cannot read a message of 1048576 bytes"));
  EXPECT_THAT(error_of(sent).message(), HasSubstr("cannot read a message of 1048576 bytes"));
}

// ---- An owner that does not ask

TEST(TcpAbandon, IsCalledWhereNobodyAsks) {
  std::promise<std::string> told;
  Endpoints endpoints = make_tcp_world(2, {}, [&, rank = 0](const Error& error) mutable {
    if (rank++ == 0) told.set_value(error.what());
  });
  const Clock::time_point start = Clock::now();
  endpoints[1].reset();
  auto text = told.get_future();
  ASSERT_EQ(text.wait_for(5s), std::future_status::ready);
  EXPECT_THAT(text.get(), HasSubstr("rank 1 is lost"));
  EXPECT_GE(Clock::now() - start, 1s);
}

TEST(TcpAbandon, IsNotCalledWhereTheOwnerKnows) {
  std::atomic<int> num_calls = 0;
  Endpoints endpoints = make_tcp_world(3, {}, [&](const Error&) { ++num_calls; });
  std::vector<std::byte> memory;
  const WorkPtr work = endpoints[0]->recv(1, 1, into(memory));
  endpoints[1]->poison(Error(ErrorKind::kIo, "stop"));  // knows: it says so
  error_of(work);                                       // knows: it has waited
  EXPECT_EQ(error_of(endpoints[2]->recv(1, 1, into(memory))).message(), "stop");
  std::this_thread::sleep_for(1200ms);
  EXPECT_EQ(num_calls, 0);
}

}  // namespace
}  // namespace trireme::transport::test
