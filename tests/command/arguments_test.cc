// Words and files that are misunderstood are refused, naming what was perhaps meant.

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/command/verb_runs.h"
#include "trireme/base/files.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Arguments : public CommandLine {
 protected:
  /// What `train` answers to a file of options.
  Answer with_file(std::string_view text, std::vector<std::string> words = {"train"}) {
    write_file_atomically(path("options.toml"), text);
    words.insert(words.begin(), {"--config", path("options.toml")});
    return run(make_net, words);
  }

  void expect_misuse(const Answer& answer, const std::string& what) {
    EXPECT_EQ(answer.code, 2) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr(what));
    EXPECT_LT(answer.err.size(), 400U) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
};

// It trained at 0.001 and ended with 0.
TEST_F(Arguments, AKeyThatIsNoOptionIsRefused) {
  expect_misuse(with_file("[train]\nlerning-rate = 0.01\n"),
                "[train] 'lerning-rate' is no option; did you mean 'learning-rate'?");
  expect_misuse(with_file("[train]\nx = 0.01\n"), "[train] 'x' is no option");
  expect_misuse(with_file("learning-rate = 0.01\n"), "'learning-rate' is no option");
  expect_misuse(with_file("[trian]\nsteps = 1\n"), "no verb; did you mean 'train'?");
  expect_misuse(with_file("[train]\nsteps = 1\n[verify]\nstepz = 1\n"), "[verify] 'stepz'");
}

TEST_F(Arguments, AFileMayWriteUnderscoresAndNameOptionsOfEveryVerb) {
  const Answer answer =
      with_file("[train]\nsteps = 1\nlearning_rate = -1.0\nseed = 3\n[verify]\nsteps = 2\n");
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("learning rate"));  // it was read: no rate is negative
}

TEST_F(Arguments, OtherFormsOfFilesAreRefused) {
  expect_misuse(with_file("train:\n  learning_rate: 0.01\n"), "is not `option = value`");
  expect_misuse(with_file(std::string_view("\x7f"
                                           "ELF\x02\x01\x00\x00",
                                           8)),
                "is no text of options");
  expect_misuse(with_file(std::string(2 << 20, '\n')), "is no text of options");
  expect_misuse(with_file("[train]\nsteps = 1\nbatch = 4\nsteps = 2\n"), "stands there twice");
  expect_misuse(with_file("[train]\nsave = my weights\n"), "has 2 values and takes one");
  expect_misuse(run(make_net, {"--config", path("nowhere.toml"), "train"}), "nowhere.toml");
}

// 010 was 8, 1e20 the largest number, -1 as a seed 2^64 - 1; abc showed a range of 309 digits.
TEST_F(Arguments, NumbersAreChecked) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--steps", "abc"}, "--steps: 'abc' is not a whole number"},
      {{"--steps", "1e20"}, "'1e20' is not a whole number"},
      {{"--steps", "99999999999999999999"}, "99999999999999999999 is beyond 64 bits"},
      {{"--steps", "-1"}, "--steps: -1 is not 0 or more"},
      {{"--steps", "0x10"}, "'0x10' is not a whole number"},
      {{"--seed", "-1"}, "--seed: '-1' is not a whole number from 0 on"},
      {{"--learning-rate", "1e400"}, "1e400 is beyond 64 bits"},
      {{"--learning-rate", "nan"}, "'nan' is not a number"},
      {{"--log-every", "0"}, "--log-every: 0 is not above 0"},
      {{"--run", path("run"), "--optimize", "memory", "--max-slowdown", "0.5"}, "not in range"},
      {{"--ranks", "3000000000"}, "--ranks"},
      {{"--device-memory", "lots", "--run", path("run")}, "--device-memory"},
  };
  for (const auto& [words, message] : cases) {
    std::vector<std::string> all = {"train"};
    all.insert(all.end(), words.begin(), words.end());
    expect_misuse(run(make_net, all), message);
  }
  expect_misuse(with_file("[train]\nsteps = many\n"), "'many' is not a whole number");
}

// `A subcommand is required`.
TEST_F(Arguments, WhatIsMeantIsGuessed) {
  expect_misuse(run(make_net, {"trian", "--steps", "3"}),
                "'trian' is no verb; did you mean 'train'?");
  expect_misuse(
      run(make_net, {"train", "--stepz", "3"}),
      "--stepz is no option of train; did you mean '--steps'? (help: program train --help)");
  expect_misuse(run(make_net, {"--steps", "3", "train"}),
                "--steps is an option of train and stands after it");
  expect_misuse(run(make_net, {"train", "3"}), "'3' is one word too many for train");
  expect_misuse(run(make_net, {}), "a verb is missing; there are record, profile");
}

// A script that adds options to a command could not override one.
TEST_F(Arguments, OfARepeatedOptionTheLastCounts) {
  const Answer answer =
      run(make_net, {"train", "--steps", "abc", "--steps", "5", "--steps", "1", "--learning_rate",
                     "0.5", "--learning-rate=0.1", "--log_every=1"});
  expect_misuse(answer, "'abc'");
  const Answer trained = run(make_net, {"train", "--steps", "5", "--steps", "1", "--log_every=1"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("step      0"), Not(HasSubstr("step      1"))));
}

TEST_F(Arguments, HelpAndVersionAreOfTheProgram) {
  const Answer help = run(make_net, {"train", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("Usage: program train"), HasSubstr("Example: program train"),
                    HasSubstr("Run folder:"), HasSubstr("Plan:"), Not(HasSubstr("Excludes"))));
  const Answer version = run(make_net, {"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr("trireme 0."));
}

TEST_F(Arguments, ThePageForManNamesVerbsAndOptions) {
  const Answer answer = run(make_net, {"--man-page"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr(".TH PROGRAM 1"), HasSubstr(".SH PROGRAM TRAIN"),
                                HasSubstr("\\-\\-learning\\-rate")));
}

TEST_F(Arguments, BashCompletesVerbsAndOptions) {
  const Answer answer = run(make_net, {"--bash-completion"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  write_file_atomically(path("completion"), answer.out);
  const std::string script = "source " + path("completion") +
                             "; COMP_WORDS=(program train --learning-r); COMP_CWORD=2; _program; "
                             "[[ ${COMPREPLY[*]} == --learning-rate ]]; ok=$?; "
                             "COMP_WORDS=(program sim); COMP_CWORD=1; _program; "
                             "[[ $ok == 0 && ${COMPREPLY[*]} == simulate ]]";
  EXPECT_EQ(std::system(("bash -c '" + script + "'").c_str()), 0) << answer.out;
}

}  // namespace
}  // namespace trireme
