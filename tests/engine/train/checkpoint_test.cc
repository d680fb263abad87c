#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/gathered_state.h"
#include "trireme/engine/train/rank_checkpoint.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using trireme::test::error_of;

const TrainingOptions kOptions{
    .seed = 3,
    .optimizer = {
        .learning_rate = 0.01, .warmup_steps = 3, .decay = "inverse_sqrt", .clip_norm = 1}};

/// Two layouts of one model whose bits are the same.
struct Move {
  std::string model;
  Layout from;
  Layout to;
  std::string optimizer = "adamw";
};

void PrintTo(const Move& move, std::ostream* out) {
  *out << testing::PrintToString(move.from) << " to " << testing::PrintToString(move.to) << " with "
       << move.optimizer;
}

/// A folder of checkpoints, removed afterwards.
struct CheckpointFolder {
  fs::path path =
      fs::temp_directory_path() / ("trireme_train_checkpoint_" + std::to_string(::getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
  checkpoint::Folder folder{path};
  CheckpointFolder() { fs::remove_all(path); }
  ~CheckpointFolder() { fs::remove_all(path); }
};

/// Trains under the layout from the newest checkpoint of `folder`, if it has one, up to `end`, and
/// writes one there. Weights and buffers after that.
Tensors train_to(std::int64_t end, const Layout& layout, const checkpoint::Folder& folder,
                 const TrainingOptions& options = kOptions) {
  const layout::Plan plan = plan_of(layout);
  const auto newest = folder.newest();
  Tensors result;
  run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
    const Workload workload = construct(workload_of(layout.model), options.seed);
    const BatchReader reader(workload.training, workload.model);
    const auto recorded = record::record(workload.model, reader.maker(), graph::Mode::kTrain);
    RankSession session(world, workload, recorded, plan, options);
    const auto facts = training_facts(workload, recorded, plan, options);
    if (newest) {
      checkpoint::Reader checkpoint(folder.published(*newest));
      check_facts(checkpoint.index().facts, facts);
      session.resume(checkpoint);
    }
    while (session.next_step() < end) session.step();
    CheckpointWriter(world, folder, facts).save(session);
    const Tensors state = gather_state(world, workload, session);
    if (world.rank() == 0) {
      for (const auto& [name, tensor] : state) result[name] = tensor.clone();
    }
  });
  return result;
}

class Moves : public testing::TestWithParam<Move> {};

/// All tensors of two checkpoints, optimizer state too.
void expect_same(const fs::path& a, const fs::path& b) {
  checkpoint::Reader one(a), other(b);
  EXPECT_EQ(one.index().position, other.index().position);
  ASSERT_EQ(one.index().contents.tensors.size(), other.index().contents.tensors.size());
  for (const auto& [key, entry] : one.index().contents.tensors) {
    const at::Tensor x = one.read(key), y = other.read(key);
    EXPECT_TRUE(x.nbytes() == 0 ||
                std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0)
        << key;
  }
}

TEST_P(Moves, ResumeElsewhereWithTheSameBits) {
  const auto& [model, from, to, optimizer] = GetParam();
  TrainingOptions options = kOptions;
  options.optimizer.name = optimizer;
  if (optimizer == "adamw") options.optimizer.average_decay = 0.9;
  if (optimizer == "novograd") options.loss_scale = {.initial = 1024, .growth_steps = 2};
  const CheckpointFolder own;
  const checkpoint::Folder straight(own.path / "straight"), broken(own.path / "broken");
  const Tensors expected = train_to(5, from, straight, options);
  train_to(2, from, broken, options);
  train_to(3, to, broken, options);
  const Tensors weights = train_to(5, from, broken, options);
  ASSERT_EQ(weights.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(at::equal(weights.at(name), tensor)) << name;
  }
  expect_same(straight.published(5), broken.published(5));
}

std::vector<Move> moves() {
  std::vector<Move> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    const std::string& model = models::names()[m];
    const Layout wide{.model = model,
                      .stages = 2,
                      .replicas = 2,
                      .schedule = kSchedules[m % 3],
                      .shards_state = m % 2 == 1,
                      .shards_parameters = m % 4 == 3};
    const Layout others[] = {
        {.model = model, .stages = 1, .replicas = 1},
        {.model = model, .stages = 4, .schedule = kVirtualSchedules[m % 5], .stages_per_rank = 2},
        {.model = model,
         .stages = 2,
         .replicas = 4,
         .stages_per_rank = 2,
         .shards_state = m % 4 == 0,
         .shards_parameters = m % 2 == 1}};
    result.push_back({model, wide, others[m % 3], m % 2 == 0 ? "adamw" : "sgd"});
  }
  // Ranks that run several replicas, and such that run one.
  const Layout uneven{.model = "transformer", .stages = 2, .replicas = 2, .each = {1, 2}};
  result.push_back({"transformer", uneven, {.model = "transformer", .stages = 3}, "adamw"});
  result.push_back({"transformer",
                    {.model = "transformer", .stages = 2, .replicas = 2, .shards_state = true},
                    {.model = "transformer", .stages = 3, .replicas = 4, .each = {4, 1, 2}},
                    "sgd"});
  result.push_back({"resnet",
                    {.model = "resnet", .replicas = 2},
                    {.model = "resnet", .stages = 2, .replicas = 4, .each = {2, 4}},
                    "novograd"});
  // State in the rows of shards, and whole.
  const Layout sharded{.model = "wide", .replicas = 4, .shards_state = true};
  const Layout few{.model = "wide", .stages = 2, .replicas = 2, .shards_state = true};
  result.push_back({"wide", sharded, {.model = "wide"}, "lamb"});
  result.push_back({"wide", {.model = "wide"}, sharded, "novograd"});
  result.push_back({"wide", few, sharded, "adamw"});
  // Values in the rows of shards, too.
  const Layout parameters{
      .model = "wide", .stages = 3, .replicas = 2, .stages_per_rank = 3, .shards_parameters = true};
  result.push_back({"wide", parameters, {.model = "wide"}, "lamb"});
  result.push_back({"wide", few, parameters, "adamw"});
  // Kernels of convolutions, matrices and vectors.
  const Layout wide{.model = "unet", .stages = 2, .replicas = 2};
  for (const char* optimizer : {"adafactor", "lamb", "lars", "novograd"}) {
    result.push_back({"unet", wide, {.model = "unet", .stages = 1, .replicas = 1}, optimizer});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Models, Moves, testing::ValuesIn(moves()));

const Layout kTwo{.model = "mlp", .stages = 2};

/// Runs `body` on every rank of the layout, with a session and a writer.
void with_writer(
    const Layout& layout, const checkpoint::Folder& folder, CheckpointErrors on_error,
    const std::function<void(const collectives::World&, RankSession&, CheckpointWriter&)>& body) {
  const layout::Plan plan = plan_of(layout);
  run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
    const Workload workload = construct(workload_of(layout), kOptions.seed);
    const BatchReader reader(workload.training, workload.model);
    const auto recorded = record::record(workload.model, reader.maker(), graph::Mode::kTrain);
    RankSession session(world, workload, recorded, plan, kOptions);
    CheckpointWriter writer(world, folder, training_facts(workload, recorded, plan, kOptions),
                            on_error);
    body(world, session, writer);
  });
}

// Written from copies while weights change.
TEST(CheckpointWriter, WritesTheStateOfItsStepWhileOthersAreRun) {
  const CheckpointFolder own;
  const checkpoint::Folder straight(own.path / "straight"), beside(own.path / "beside");
  for (const Layout& layout :
       {Layout{.model = "wide", .stages = 2, .replicas = 2, .shards_state = true}, kTwo}) {
    fs::remove_all(own.path);
    train_to(2, layout, straight);
    train_to(4, layout, straight);
    with_writer(layout, beside, CheckpointErrors::kStop,
                [](const auto& world, RankSession& session, CheckpointWriter& writer) {
                  for (int step = 0; step < 2; ++step) session.step();
                  writer.begin(session);
                  for (int step = 2; step < 4; ++step) session.step();
                  writer.begin(session);
                  session.step();
                  writer.finish();
                  writer.finish();
                  EXPECT_FALSE(writer.published() && world.rank() != 0);
                });
    expect_same(straight.published(2), beside.published(2));
    expect_same(straight.published(4), beside.published(4));
    EXPECT_EQ(beside.newest(), 4);
  }
}

// Other values, before the thread has come far.
TEST(CheckpointWriter, WritesACopy) {
  const CheckpointFolder own;
  const checkpoint::Folder straight(own.path / "straight"), beside(own.path / "beside");
  const Layout layout{.model = "wide", .stages = 2};
  train_to(2, layout, straight);
  with_writer(layout, beside, CheckpointErrors::kStop,
              [](const auto&, RankSession& session, CheckpointWriter& writer) {
                for (int step = 0; step < 2; ++step) session.step();
                writer.begin(session);
                const at::NoGradGuard no_grad;
                for (const std::string& name : session.store().names()) {
                  session.store().value(name).fill_(7);
                }
                writer.finish();
              });
  expect_same(straight.published(2), beside.published(2));
}

// Where the folder should be is a file.
TEST(CheckpointWriter, AFailureEndsTheTrainingOrDoesNot) {
  const CheckpointFolder own;
  std::ofstream(own.path) << "a file";
  const auto body = [](const auto&, RankSession& session, CheckpointWriter& writer) {
    session.step();
    writer.begin(session);
    session.step();
    writer.save(session);
    EXPECT_EQ(session.step().step, 2);
  };
  const Error error =
      error_of([&] { with_writer(kTwo, own.folder, CheckpointErrors::kStop, body); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
  EXPECT_THAT(error.message(), HasSubstr(own.path.string()));
  with_writer(kTwo, own.folder, CheckpointErrors::kContinue, body);
  fs::remove(own.path);
  with_writer(kTwo, own.folder, CheckpointErrors::kContinue, body);
  EXPECT_EQ(own.folder.newest(), 2);
}

TEST(TrainingFacts, AnotherRunIsRefused) {
  const CheckpointFolder own;
  train_to(1, kTwo, own.folder);
  const auto refusal = [&](const Layout& layout, const TrainingOptions& options) {
    const Error error = error_of([&] { train_to(2, layout, own.folder, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  TrainingOptions other = kOptions;
  other.optimizer.learning_rate = 0.02;
  EXPECT_THAT(refusal(kTwo, other), HasSubstr("learning_rate: 0.01 -> 0.02"));
  EXPECT_THAT(refusal({.model = "mlp", .stages = 2, .lanes = 2}, kOptions),
              HasSubstr("lanes: 4 -> 2"));
  EXPECT_THAT(refusal({.model = models::names().back(), .stages = 2}, kOptions),
              HasSubstr("data: "));
}

TEST(TrainingFacts, AnotherMachineIsAWarning) {
  const checkpoint::Facts saved = {{"seed", "1"}, {"machine.torch", "2.11"}};
  EXPECT_TRUE(check_facts(saved, saved).empty());
  const auto warnings = check_facts(saved, {{"seed", "1"}, {"machine.torch", "2.15"}});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], testing::HasSubstr("machine.torch"));
  for (const checkpoint::Facts& other :
       {checkpoint::Facts{{"seed", "1"}, {"decay", "none"}}, {{"machine.torch", "2.11"}}}) {
    EXPECT_EQ(error_of([&] { check_facts(saved, other); }).kind(), ErrorKind::kInvalidArgument);
  }
}

/// Writes the index again after a change to its tensors.
void change_tensors(
    const fs::path& folder,
    const std::function<void(std::map<std::string, checkpoint::TensorEntry>&)>& change) {
  checkpoint::Index index = checkpoint::load(folder / "index.json");
  change(index.contents.tensors);
  checkpoint::save(index, folder / "index.json");
}

TEST(OptimizerState, ThatIsNotWholeIsRefused) {
  const CheckpointFolder own;
  train_to(2, kTwo, own.folder);
  const fs::path folder = own.folder.published(2);
  const checkpoint::Index whole = checkpoint::load(folder / "index.json");
  const auto refusal = [&](const std::string& from, const std::string& to) {
    checkpoint::save(whole, folder / "index.json");
    change_tensors(folder, [&](auto& tensors) {
      const auto found = tensors.lower_bound(from);
      auto entry = tensors.extract(found);
      if (to.empty()) return;
      entry.key() = to;
      tensors.insert(std::move(entry));
    });
    const Error error = error_of([&] { train_to(3, kTwo, own.folder); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    return error.message();
  };
  EXPECT_THAT(refusal("optimizer/exp_avg/", ""), HasSubstr("is not what this optimizer keeps"));
  EXPECT_THAT(refusal("optimizer/exp_avg/", "optimizer/lost"), HasSubstr("state of no parameter"));
  EXPECT_THAT(refusal("optimizer/step/", "optimizer/step/lost"),
              HasSubstr("state of no parameter"));
  EXPECT_THAT(refusal("optimizer/step/", "optimizer/steps/"), HasSubstr("state of no parameter"));
}

}  // namespace
}  // namespace trireme::train
