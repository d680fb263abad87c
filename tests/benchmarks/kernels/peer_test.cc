#include "benchmarks/kernels/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::kernels::bench {
namespace {

ErrorKind kind_of_load(PeerProcess& peer) {
  try {
    peer.load("torch", "adamw/x", "in", "out");
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kIo;
}

TEST(PeerTest, AProgramThatIsMissingIsNamed) {
  try {
    PeerProcess peer({.python = "/nowhere/python", .script = "x.py"});
    peer.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
    EXPECT_THAT(error.message(), testing::HasSubstr("/nowhere/python"));
  }
}

TEST(PeerTest, AProcessThatEndsIsALostPeer) {
  PeerProcess peer({.python = "/bin/true", .script = "x.py"});
  EXPECT_EQ(kind_of_load(peer), ErrorKind::kPeerLost);
}

}  // namespace
}  // namespace trireme::kernels::bench
