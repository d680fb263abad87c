#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/arguments/numbers.h"
#include "trireme/base/exit_code.h"
#include "trireme/command/verbs.h"
#include "trireme/data/read_parts.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/reader_threads.h"
#include "trireme/error.h"
#include "trireme/kernels/spread.h"

namespace trireme::command {
namespace {

using Seconds = std::chrono::duration<double>;

struct ProfileDataOptions {
  std::vector<std::filesystem::path> records;  ///< None: the model's training data.
  std::int64_t num_samples = 256;
  std::int64_t batch = 32;
  std::vector<int> threads = {1, 2};
  double step_ms = 0;
};

/// Whole records as samples, each field as the bytes that lie in its file; nothing is made of them.
class WholeRecords : public data::Source {
 public:
  explicit WholeRecords(std::shared_ptr<const data::RecordSource> records)
      : records_(std::move(records)) {}

  std::int64_t num_samples() const override { return records_->num_records(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> /*destinations*/) const override {
    for (const std::string& field : records_->fields(sample.index)) {
      data::ReadTimer timer("read");
      timer.add_bytes(std::ssize(records_->read(sample.index, field)));
    }
  }
  std::string identity() const override { return records_->identity(); }

 private:
  std::shared_ptr<const data::RecordSource> records_;
  std::vector<data::Field> fields_;
};

/// What is read: of a model, or records alone.
Workload data_of(const ProfileDataOptions& options, const Context& context) {
  if (options.records.empty()) return train::construct(context.workload(), context.seed);
  if (!context.model.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--records are read as they lie in their files; leave out --model, or --records");
  }
  return {.model = {},
          .training = std::make_shared<WholeRecords>(data::open_records(options.records)),
          .evaluation = nullptr};
}

/// What reading the samples with one number of threads took.
struct ReadRun {
  int threads = 1;
  double seconds = 0;
  std::int64_t num_samples = 0;
  data::ReadParts::ByName parts;

  double samples_per_s() const { return static_cast<double>(num_samples) / seconds; }
};

/// The first samples of the training, from `first` on, a batch at a time. Every run reads others: what lies in the system's
/// cache for one would flatter the next.
ReadRun read_samples_of(const Workload& workload, const ProfileDataOptions& options, int threads,
                        std::int64_t first_step, std::uint64_t seed) {
  const BatchLayout batch{.global_batch = options.batch, .microbatch = options.batch, .lanes = 1};
  const train::StepReader reader(workload, batch, seed, data::OrderKind::kShuffled,
                                 kernels::on_threads(threads));
  const std::int64_t num_steps = (options.num_samples + options.batch - 1) / options.batch;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < num_steps; ++step) reader.read(first_step + step, 0);
  const double seconds = Seconds(std::chrono::steady_clock::now() - begin).count();
  return {threads, seconds, num_steps * options.batch, reader.take_parts()};
}

/// Threads that read a batch within a step, as fast each as those of `run`.
int threads_for(const ReadRun& run, const ProfileDataOptions& options) {
  const double seconds = static_cast<double>(options.batch) / run.samples_per_s();
  return train::threads_that_keep_up({seconds, run.threads}, options.step_ms / 1e3);
}

Json to_json(const ReadRun& run) {
  Json json = {{"threads", run.threads},
               {"samples", run.num_samples},
               {"samples_per_s", run.samples_per_s()}};
  for (const auto& [name, part] : run.parts) {
    json["parts"][name] = {
        {"ms_per_sample", Seconds(part.time).count() * 1e3 / static_cast<double>(run.num_samples)},
        {"bytes", part.bytes}};
  }
  return json;
}

std::string parts_text(const ReadRun& run) {
  const auto count = static_cast<double>(run.num_samples);
  const double all = run.seconds * run.threads;
  std::vector<std::pair<std::string, data::ReadPart>> parts(run.parts.begin(), run.parts.end());
  std::ranges::sort(parts, std::greater(), [](const auto& item) { return item.second.time; });
  std::string text = "\npart          ms a sample  of the time  KiB a sample\n";
  double timed = 0;
  for (const auto& [name, part] : parts) {
    const double seconds = Seconds(part.time).count();
    timed += seconds;
    text +=
        fmt::format("{:12}  {:11.3f}  {:9.1f} %", name, seconds * 1e3 / count, 100 * seconds / all);
    if (part.bytes > 0)
      text += fmt::format("  {:12.1f}", static_cast<double>(part.bytes) / 1024 / count);
    text += "\n";
  }
  const double rest = std::max(0.0, all - timed);
  return text + fmt::format("{:12}  {:11.3f}  {:9.1f} %\n", "the rest", rest * 1e3 / count,
                            100 * rest / all);
}

std::string profile_text(const std::vector<ReadRun>& runs, const Workload& workload,
                         const ProfileDataOptions& options) {
  std::int64_t sample_bytes = 0;
  for (const data::Field& field : workload.training->fields()) sample_bytes += field.num_bytes();
  const std::int64_t count = workload.training->num_samples();
  std::string text =
      options.records.empty()
          ? fmt::format(
                "{} samples in the order of the training, {:.1f} KiB each as the model takes "
                "them\n\n",
                count, static_cast<double>(sample_bytes) / 1024)
          : fmt::format("{} records in shuffled order, all fields as they lie in files\n\n", count);
  if (const std::string reading = workload.training->reading(); !reading.empty()) {
    text += "read " + reading + "\n\n";
  }
  text += "threads that read  samples/s\n";
  for (const ReadRun& run : runs) {
    text += fmt::format("{:17}  {:9.1f}\n", run.threads, run.samples_per_s());
  }
  text += parts_text(runs.front());
  if (options.step_ms == 0) return text;
  return text +
         fmt::format("\na rank that takes {} samples every {:.1f} ms wants --reader-threads {}\n",
                     options.batch, options.step_ms, threads_for(runs.front(), options));
}

int profile_data(const ProfileDataOptions& options, const Context& context) {
  const Workload workload = data_of(options, context);
  std::vector<ReadRun> runs;
  const std::int64_t num_steps = (options.num_samples + options.batch - 1) / options.batch;
  for (const int threads : options.threads) {
    runs.push_back(read_samples_of(workload, options, threads,
                                   num_steps * static_cast<std::int64_t>(runs.size()),
                                   context.seed));
  }
  Json json = {{"runs", Json::array()}};
  if (const std::string reading = workload.training->reading(); !reading.empty()) {
    json["reading"] = reading;
  }
  for (const ReadRun& run : runs) json["runs"].push_back(to_json(run));
  if (options.step_ms > 0) {
    json["reader_threads"] = threads_for(runs.front(), options);
  }
  print(context, json, profile_text(runs, workload, options));
  return kDone;
}

}  // namespace

Body add_profile_data(CLI::App& app, Context& context) {
  auto options = std::make_shared<ProfileDataOptions>();
  app.add_option("--records", options->records,
                 "Read records of these files or folders, tar shards say, without a model: what "
                 "files give, before anything is decoded");
  app.add_option("--samples", options->num_samples,
                 "How many are read, with each number of threads")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--batch", options->batch, "Samples that a rank takes at once")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--threads", options->threads,
                 "Numbers of threads to try; the parts are those of the first")
      ->delimiter(',')
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option(
         "--step-ms", options->step_ms,
         "Milliseconds of a step (trireme simulate): how many threads keep up with it is said then")
      ->check(arguments::positive());
  app.footer(
      "Example: trireme profile-data --model resnet50 --resnet50-images train --batch 32 --step-ms "
      "400");
  return [options, &context] { return profile_data(*options, context); };
}

}  // namespace trireme::command
