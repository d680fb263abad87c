// Real processes that read in each other's memory instead of staging it, and one that may not.

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/host/exchange.h"
#include "trireme/wire/collectives/host/way.h"
#include "trireme/wire/endpoint/elastic_world.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using transport::Address;
using transport::ElasticWorld;
using transport::test::RankProcesses;
using transport::test::TestStore;
using Words = std::vector<std::uint32_t>;

constexpr int kReaders = 3;
constexpr int kFirstLent =
    Chooser<Route>::kFirstPeriod;  ///< Operations of a kind before one that is.
constexpr int kRounds = kFirstLent + 20;

/// What rank `from` has for rank `to`; of a different value in each place and round.
Words words_of(int from, int to, int round, std::size_t count) {
  Words words(count);
  std::iota(words.begin(), words.end(), 1'000'000U * (100 * round + 10 * from + to));
  return words;
}

void expect_same(std::span<const std::uint32_t> got, const Words& wanted, const char* operation) {
  if (std::equal(got.begin(), got.end(), wanted.begin(), wanted.end())) return;
  throw Error(ErrorKind::kCorruptData, std::string("wrong words after ") + operation);
}

void gather(Group& group, int round, std::size_t count) {
  Words all(count * kReaders);
  const int own = group.group_rank();
  const Words mine = words_of(own, 0, round, count);
  group.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)))
      ->wait_for(20s);
  for (int i = 0; i < kReaders; ++i) {
    expect_same(std::span(all).subspan(i * count, count), words_of(i, 0, round, count),
                "all_gather");
  }
}

void exchange(Group& group, int round, std::size_t count) {
  const int own = group.group_rank();
  Words to_all;
  for (int i = 0; i < kReaders; ++i) {
    const Words words = words_of(own, i, round, count);
    to_all.insert(to_all.end(), words.begin(), words.end());
  }
  Words from_all(count * kReaders);
  group.all_to_all(std::as_bytes(std::span(to_all)), std::as_writable_bytes(std::span(from_all)))
      ->wait_for(20s);
  for (int i = 0; i < kReaders; ++i) {
    expect_same(std::span(from_all).subspan(i * count, count), words_of(i, own, round, count),
                "all_to_all");
  }
}

/// Parts that lie apart, of sizes of their own: never read in place, for nobody knows where they are.
void exchange_apart(Group& group, int round, std::size_t count) {
  const int own = group.group_rank();
  std::vector<Words> to(kReaders), from(kReaders);
  std::vector<std::span<const std::byte>> sends;
  std::vector<std::span<std::byte>> recvs;
  for (int i = 0; i < kReaders; ++i) {
    to[i] = words_of(own, i, round, count + 100 * own + i);
    from[i].resize(count + 100 * i + own);
    sends.push_back(std::as_bytes(std::span(to[i])));
    recvs.push_back(std::as_writable_bytes(std::span(from[i])));
  }
  group.all_to_all(Sends(sends), Receives(recvs))->wait_for(20s);
  for (int i = 0; i < kReaders; ++i) {
    expect_same(from[i], words_of(i, own, round, from[i].size()), "all_to_all of parts apart");
  }
}

void broadcast(Group& group, int round, std::size_t count) {
  const int root = round % kReaders;
  Words words = words_of(group.group_rank(), 0, round, count);
  group.broadcast(std::as_writable_bytes(std::span(words)), root)->wait_for(20s);
  expect_same(words, words_of(root, 0, round, count), "broadcast");
}

/// Below and above what is read in place, and more than a piece of what is staged.
void move_all(Group& group, int round) {
  for (const std::size_t count : {1000, 10'000, 300'001}) {
    gather(group, round, count);
    exchange(group, round, count);
    exchange_apart(group, round, count);
    broadcast(group, round, count);
  }
}

/// From now on the system refuses this process to read in others.
void forbid_reading() {
  const std::array<sock_filter, 4> refuse = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = refuse.size(), .filter = const_cast<sock_filter*>(refuse.data())};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // All threads of the process: any of them may go on with an operation.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    throw Error(ErrorKind::kIo, "no filter", std::system_error(errno, std::generic_category()));
  }
  if (transport::ProcessMemory::open(::getpid())) {
    throw Error(ErrorKind::kIo, "the filter refuses nothing");
  }
}

void run(const std::function<void(Group&)>& body) {
  RankProcesses processes(kReaders, [&](int rank, const Address& store, const auto&) {
    ElasticWorld world({.store = store, .token = transport::Token::for_tests()},
                       {.rank = rank, .world_size = kReaders});
    {
      Group group(world.endpoint(), {0, 1, 2}, {.name = "data", .id = 1, .deadline = 20s});
      body(group);
    }
    world.shutdown();
  });
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kReaders; ++rank) EXPECT_EQ(processes.line_from(rank), "ended well");
}

TEST(LentMemory, IsReadByAll) {
  run([](Group& group) {
    for (int round = 0; round < kRounds; ++round) move_all(group, round);
  });
}

// Their addresses were told as 0 and read from: wrong bytes where something is mapped there.
TEST(LentMemory, PartsThatLieApartAreNotRead) {
  std::vector<std::byte> arena(Arena::bytes_for(2)), parts(3 << 20);
  const ArenaView view{.arena = Arena(arena, 2), .rank = 0};
  const std::span<std::byte> all(parts);
  Request request{.description = {.operation = Collective::kAllToAll, .count = 1 << 20},
                  .sends = {all.first(1 << 19), all.subspan(1 << 19, 1 << 19)},
                  .recvs = {all.subspan(2 << 20, 1 << 19), all.last(1 << 19)}};
  EXPECT_TRUE(make_all_to_all(view, request)->moves());
  request.sends[1] = all.subspan(1 << 20, 1 << 19);
  EXPECT_FALSE(make_all_to_all(view, request)->moves());
  request.sends[1] = all.subspan(1 << 19, 1 << 19);
  request.description.count = 0;  // of sizes of their own
  EXPECT_FALSE(make_all_to_all(view, request)->moves());
}

TEST(LentMemory, IsStagedWhereOneMayNotRead) {
  run([](Group& group) {
    if (group.group_rank() == 1) forbid_reading();
    for (int round = 0; round < kRounds; ++round) move_all(group, round);
  });
}

TEST(LentMemory, IsStagedFromWhereOneMayNotReadAnyMore) {
  run([](Group& group) {
    for (int round = 0; round < kRounds; ++round) {
      // Its next operation of a size is one of those that are tried this way.
      if (round == kFirstLent + 2 && group.group_rank() == 1) forbid_reading();
      move_all(group, round);
    }
  });
}

}  // namespace
}  // namespace trireme::collectives::test
