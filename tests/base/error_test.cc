#include "trireme/error.h"

#include <gtest/gtest.h>

#include "trireme/base/check.h"

namespace trireme {
namespace {

TEST(Error, SaysKindAndMessage) {
  const Error error(ErrorKind::kIo, "cannot read a.json");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_EQ(error.message(), "cannot read a.json");
  EXPECT_STREQ(error.what(), "input/output: cannot read a.json");
  EXPECT_TRUE(std::string_view(error.where().file_name()).ends_with("error_test.cc"));
}

TEST(Error, ContextIsFilledOnTheWayUpAndWhatIsSetStays) {
  Error error(ErrorKind::kTimeout, "no answer");
  error.add({.peer = 2, .operation = "all_reduce"});
  error.add({.rank = 1, .peer = 9, .step = 40});
  EXPECT_STREQ(error.what(), "timeout: no answer (rank 1, peer 2, operation all_reduce, step 40)");
  EXPECT_EQ(error.context().peer, 2);
}

TEST(Error, NamesEveryFieldOfItsContext) {
  Error error(ErrorKind::kPeerLost, "gone");
  error.add({.rank = 0,
             .peer = 1,
             .group = "data",
             .operation = "send",
             .sequence = 2,
             .step = 3,
             .microbatch = 4});
  EXPECT_STREQ(error.what(),
               "peer lost: gone (rank 0, peer 1, group data, operation send, sequence 2, step 3, "
               "microbatch 4)");
}

TEST(Error, CarriesItsCauses) {
  const Error first(ErrorKind::kIo, "disk");
  const Error second(ErrorKind::kCorruptData, "plan", first);
  const Error third(ErrorKind::kInvalidArgument, "train", second);
  EXPECT_STREQ(third.what(),
               "invalid argument: train; caused by corrupt data: plan; caused by input/output: "
               "disk");
}

TEST(Error, EveryKindHasItsOwnText) {
  EXPECT_EQ(to_text(ErrorKind::kInvalidArgument), "invalid argument");
  EXPECT_EQ(to_text(ErrorKind::kTimeout), "timeout");
  EXPECT_EQ(to_text(ErrorKind::kPeerLost), "peer lost");
  EXPECT_EQ(to_text(ErrorKind::kIo), "input/output");
  EXPECT_EQ(to_text(ErrorKind::kCorruptData), "corrupt data");
  EXPECT_EQ(to_text(ErrorKind::kResourceExhausted), "resource exhausted");
  EXPECT_EQ(to_text(ErrorKind::kUnavailable), "unavailable");
  EXPECT_EQ(to_text(ErrorKind::kCancelled), "cancelled");
  EXPECT_EQ(to_text(ErrorKind::kModelFailure), "model failure");
}

TEST(Check, AbortsNamingConditionAndMessage) {
  TRIREME_CHECK(1 + 1 == 2, "never seen");
  EXPECT_DEATH(TRIREME_CHECK(1 + 1 == 3, "rank 4"), "broken invariant 1 \\+ 1 == 3 at .*rank 4");
}

}  // namespace
}  // namespace trireme
