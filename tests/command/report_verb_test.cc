#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/command/verb_runs.h"
#include "trireme/base/files.h"

namespace trireme {
namespace {

using testing::HasSubstr;

/// The verb becomes another process where it succeeds: that is tested in tests/report.
class ReportVerb : public CommandLine {
 protected:
  void TearDown() override {
    unsetenv("TRIREME_PYTHON");
    CommandLine::TearDown();
  }
};

TEST_F(ReportVerb, SaysWhichPythonIsMissing) {
  setenv("TRIREME_PYTHON", path("no-python").c_str(), 1);
  const Answer answer = run(make_net, {"report", folder_.string()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("no-python"));
  EXPECT_THAT(answer.err, HasSubstr("TRIREME_PYTHON names it"));
}

TEST_F(ReportVerb, SaysThatAPythonIsNoProgram) {
  setenv("TRIREME_PYTHON", folder_.c_str(), 1);
  const Answer answer = run(make_net, {"report", folder_.string()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("cannot start " + folder_.string()));
}

// `show` refused it, and the page was made.
TEST_F(ReportVerb, RefusesARunFileThatIsDamaged) {
  const std::string run_file = R"({"format": "trireme.run", "version": 1, "sha256": ")" +
                               std::string(64, '0') + R"(", "model": "m"})";
  write_file_atomically(path("run.json"), std::string_view(run_file));
  const Answer answer = run(make_net, {"report", folder_.string()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("sha256"));
}

TEST_F(ReportVerb, WantsAFolder) { EXPECT_EQ(run(make_net, {"report"}).code, 2); }

}  // namespace
}  // namespace trireme
