// What `trireme doctor` finds, where this process can make it so.

#include "trireme/wire/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/socket.h"

namespace trireme::doctor::test {
namespace {

using testing::HasSubstr;
using transport::Token;
using transport::test::TestStore;
using namespace std::chrono_literals;

std::string path_over(transport::test::Backend backend) {
  using transport::test::Backend;
  if (transport::test::shares_memory(backend)) return "shm";
  if (backend == Backend::kOfi) return "ofi:tcp;ofi_rxm";
  return backend == Backend::kTcp ? "tcp" : "sim";
}

Finding found(const std::string& topic, int local_ranks = 0) {
  const auto findings = examine_host(local_ranks);
  const auto match = std::ranges::find(findings, topic, &Finding::topic);
  EXPECT_NE(match, findings.end()) << topic;
  return match == findings.end() ? Finding{} : *match;
}

TEST(Doctor, SeesWhatThisHostHas) {
  EXPECT_THAT(found("addresses").found, HasSubstr("127.0.0.1 (lo)"));
  EXPECT_EQ(found("shared memory").verdict, Verdict::kGood);
  EXPECT_EQ(found("futex").verdict, Verdict::kGood);
  EXPECT_FALSE(found("peers' memory").found.empty());
  EXPECT_EQ(found("cores", 1).verdict, Verdict::kGood);
  const Finding crowded = found("cores", 100'000);
  EXPECT_EQ(crowded.verdict, Verdict::kSlow);
  EXPECT_THAT(crowded.advice, HasSubstr("one rank per core"));
}

TEST(Doctor, KnowsWhatYamaForbids) {
  EXPECT_EQ(judge_peer_memory("0").verdict, Verdict::kGood);
  EXPECT_EQ(judge_peer_memory("1").verdict, Verdict::kGood);  // ranks permit it
  EXPECT_EQ(judge_peer_memory("2").verdict, Verdict::kSlow);
  EXPECT_THAT(judge_peer_memory("3").found, HasSubstr("ptrace_scope is 3"));
}

TEST(Doctor, SaysWhyAStoreIsNotReached) {
  transport::Address nobody;
  {
    const TestStore server;
    nobody = server.address();
    const Finding good = examine_store(server.address(), Token::for_tests(), 5s);
    EXPECT_EQ(good.verdict, Verdict::kGood) << good.found;
    EXPECT_THAT(good.found, HasSubstr("this host is 127.0.0.1 to it"));
  }
  const Finding finding = examine_store(nobody, Token::for_tests(), 300ms);
  EXPECT_EQ(finding.verdict, Verdict::kBroken);
  EXPECT_THAT(finding.found, HasSubstr("timeout"));
  EXPECT_THAT(finding.advice, HasSubstr("firewall"));
}

// As every job's store has one.
TEST(Doctor, NeedsTheTokenOfTheStore) {
  const transport::StoreServer server({}, Token("secret"), Logger(LogLevel::kOff));
  const Finding good = examine_store(server.address(), Token("secret"), 5s);
  EXPECT_EQ(good.verdict, Verdict::kGood) << good.found;
  const Finding other = examine_store(server.address(), Token("other"), 5s);
  EXPECT_EQ(other.verdict, Verdict::kBroken);
  EXPECT_THAT(other.found, HasSubstr("TRIREME_TOKEN"));
}

TEST(Doctor, SeesThatARankIsLost) {
  TestStore server;
  server.mark_lost(3, "it was killed");
  const Finding finding = examine_store(server.address(), Token::for_tests(), 5s);
  EXPECT_EQ(finding.verdict, Verdict::kBroken);
  EXPECT_THAT(finding.found, HasSubstr("rank 3 is lost: it was killed"));
}

TEST(Doctor, PrintsAllOfALongFinding) {
  const std::string text = to_text(std::vector<Finding>{
      {"addresses", Verdict::kGood, std::string(3000, 'x'), ""},
      {"a topic of more than twenty letters", Verdict::kBroken, "no", "repair it"}});
  EXPECT_EQ(text, "addresses             good    " + std::string(3000, 'x') +
                      "\na topic of more than twenty letters  broken  no\nwhat to do\n"
                      "  a topic of more than twenty letters: repair it\n");
}

/// What is found of a store, within its patience.
Finding examine_in_time(const transport::Address& address, std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  Finding finding = examine_store(address, Token::for_tests(), patience);
  EXPECT_LT(std::chrono::steady_clock::now() - start, patience + 700ms);
  return finding;
}

// As where a firewall drops what comes later, or another program has the port.
TEST(Doctor, DoesNotWaitForWhoNeverAnswers) {
  const Descriptor listener = transport::listen_on({"127.0.0.1", 0});
  const Finding finding = examine_in_time(transport::local_address(listener), 300ms);
  EXPECT_EQ(finding.verdict, Verdict::kBroken);
  EXPECT_THAT(finding.found, HasSubstr("the store at 127.0.0.1:"));
  EXPECT_THAT(finding.advice, HasSubstr("firewall"));
}

TEST(Doctor, SaysThatAPortRefuses) {
  transport::Address closed;
  {
    const Descriptor listener = transport::listen_on({"127.0.0.1", 0});
    closed = transport::local_address(listener);
  }
  const Finding finding = examine_in_time(closed, 300ms);
  EXPECT_EQ(finding.verdict, Verdict::kBroken);
  EXPECT_THAT(finding.found, HasSubstr("refused"));
}

// The store has an address of no host alone: as one whose name leads to 127.0.1.1 here.
TEST(Doctor, SeesThatOthersCannotReachALoopback) {
  const TestStore server;
  const transport::Address elsewhere{"0.0.0.0", server.address().port};
  const Finding finding = examine_store(elsewhere, Token::for_tests(), 5s);
  EXPECT_EQ(finding.verdict, Verdict::kBroken);
  EXPECT_THAT(finding.found, HasSubstr("this host is 127.0.0.1 to it, which other hosts cannot"));
  EXPECT_THAT(finding.advice, HasSubstr("TRIREME_INTERFACE"));
  EXPECT_EQ(examine_store(elsewhere, Token::for_tests(), 5s, "192.0.2.7").verdict, Verdict::kGood);
  const Finding chosen = examine_store(elsewhere, Token::for_tests(), 5s, "127.0.0.2");
  EXPECT_THAT(chosen.found, HasSubstr("this host is 127.0.0.2 to it, which other hosts cannot"));
  // Where all ranks are on one host that is well.
  EXPECT_EQ(examine_store(server.address(), Token::for_tests(), 5s, "127.0.0.2").verdict,
            Verdict::kGood);
}

class DoctorOfPeers : public transport::test::OverBackend {};

TEST_P(DoctorOfPeers, MeasuresFromRank0) {
  auto endpoints = transport::test::make_world(GetParam(), 3);
  std::vector<PeerPath> paths;
  transport::test::expect_no_errors(
      transport::test::run_ranks(endpoints, [&](transport::Endpoint& endpoint) {
        const auto measured = measure_peers(endpoint, 20s);
        EXPECT_EQ(measured.size(), endpoint.rank() == 0 ? 2 : 0);
        if (endpoint.rank() == 0) paths = measured;
        endpoint.shutdown(20s);
      }));
  ASSERT_EQ(paths.size(), 2);
  for (const PeerPath& path : paths) {
    EXPECT_EQ(path.path, path_over(GetParam()));
    EXPECT_GT(path.round_trip.count(), 0);
    EXPECT_GT(path.gb_per_s, 0);
    EXPECT_FALSE(path.host.empty());
  }
  EXPECT_THAT(to_text(paths), HasSubstr("  " + path_over(GetParam()) + "  "));
}

INSTANTIATE_TEST_SUITE_P(Backends, DoctorOfPeers,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace trireme::doctor::test
