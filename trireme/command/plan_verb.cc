#include <memory>
#include <optional>
#include <string>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/words.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/plan/analytic/failures.h"
#include "trireme/plan/analytic/layout_search.h"
#include "trireme/plan/analytic/search_show.h"

namespace trireme::command {
namespace {

struct PlanVerbOptions {
  std::string model;
  std::string machine = "p4d";
  analytic::LayoutSearch search{.global_batch = 0};
  double num_samples = 0;
  double num_tokens = 0;
  double mtbf_hours = 0;  ///< Of a host; 0: failures are not asked about.
  analytic::Failures failures;
};

/// The batch of a published layout on so many hosts, else of any; without one a sample for each device.
std::int64_t usual_batch(const PlanVerbOptions& options, const analytic::Machine& machine) {
  for (const analytic::PublishedLayout& one :
       analytic::published_for(options.model, options.machine, options.search.num_hosts)) {
    if (one.layout.global_batch > 1) return one.layout.global_batch;
  }
  return options.search.num_hosts * machine.devices_per_host;
}

/// Nothing where failures were not asked about.
std::optional<analytic::Goodput> goodput_of(const PlanVerbOptions& options) {
  if (options.mtbf_hours == 0) return std::nullopt;
  analytic::Failures failures = options.failures;
  failures.host_mtbf_s = options.mtbf_hours * 3600;
  return analytic::goodput(failures, options.search.num_hosts);
}

int plan_layouts(PlanVerbOptions options, bool has_type, const Context& context) {
  if (options.num_samples > 0 && options.num_tokens > 0) {
    throw Error(ErrorKind::kInvalidArgument, "--samples and --tokens say the same; give one");
  }
  const analytic::ModelShape& shape = analytic::model(options.model);
  if (options.num_tokens > 0 && !shape.is_transformer()) {
    throw Error(ErrorKind::kInvalidArgument, shape.name + " has no tokens; give --samples");
  }
  const analytic::Machine& machine = analytic::machine(options.machine);
  analytic::LayoutSearch& search = options.search;
  if (search.global_batch == 0) search.global_batch = usual_batch(options, machine);
  if (search.seq_len == 0) search.seq_len = shape.seq_len;
  if (!has_type && !machine.accelerator.has_bf16) search.type = analytic::MatrixType::kF16;
  const analytic::LayoutsFound found =
      analytic::search_layouts(shape, machine, analytic::usual_achieved(), search);
  analytic::ShownSearch shown{.shape = shape, .machine = machine, .search = search, .found = found};
  shown.num_samples = options.num_samples;
  shown.num_tokens = options.num_tokens;
  shown.goodput = goodput_of(options);
  analytic::add_published(analytic::usual_achieved(), shown);
  print(context, analytic::to_json(shown), analytic::show(shown));
  return 0;
}

void add_failures(CLI::App& app, PlanVerbOptions& options) {
  CLI::Option* mtbf =
      app.add_option("--mtbf-hours", options.mtbf_hours,
                     "Mean hours between failures of one host: how much of the time is lost")
          ->check(CLI::PositiveNumber);
  app.add_option("--checkpoint-seconds", options.failures.checkpoint_s,
                 "For which training stands still at a checkpoint")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->needs(mtbf);
  app.add_option("--checkpoint-every", options.failures.interval_s,
                 "Seconds of training between checkpoints; without it the best")
      ->check(CLI::PositiveNumber)
      ->needs(mtbf);
  app.add_option("--restart-seconds", options.failures.restart_s,
                 "From a failure until training goes on")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(mtbf);
}

}  // namespace

Body add_plan(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlanVerbOptions>();
  analytic::LayoutSearch& search = options->search;
  app.add_option("name", options->model,
                 "A model of publications: gpt3-175b, llama3-405b, t5-3b, ..")
      ->required();
  app.add_option("--topology", options->machine,
                 "Kind of the hosts: p3dn, p4d, p5, dgx_a100, dgx_h100, gb200_nvl72, ..")
      ->capture_default_str();
  app.add_option("--hosts", search.num_hosts, "How many")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--batch", search.global_batch,
                 "Samples per optimizer step; without it as published, or one for each device")
      ->check(arguments::positive());
  app.add_option("--seq-len", search.seq_len, "Tokens of a sample; without it the model's")
      ->check(arguments::positive());
  arguments::add_words<analytic::MatrixType>(
      app, "--type", search.type,
      "Type of values in matrix products; without it bf16, or f16 "
      "where the devices have no bf16",
      {{"f32", analytic::MatrixType::kF32},
       {"f16", analytic::MatrixType::kF16},
       {"bf16", analytic::MatrixType::kBf16},
       {"f8", analytic::MatrixType::kF8}});
  app.add_option("--samples", options->num_samples,
                 "Samples of the training: how many days it takes")
      ->check(CLI::PositiveNumber);
  app.add_option("--tokens", options->num_tokens, "The same in tokens")->check(CLI::PositiveNumber);
  add_failures(app, *options);
  app.add_option("--most", search.most, "Layouts to print")
      ->check(arguments::positive())
      ->capture_default_str();
  app.footer(
      "Example: trireme plan gpt3-175b --topology p4d --hosts 120 --batch 1920\n"
      "Nothing runs: steps follow from published numbers of devices, and parts of them that "
      "published "
      "runs achieved (`trireme validate`).");
  return [options, &context, &app] {
    return plan_layouts(*options, app.count("--type") > 0, context);
  };
}

}  // namespace trireme::command
