#include <charconv>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/words.h"
#include "trireme/command/plan_page.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/plan/analytic/failures.h"
#include "trireme/plan/analytic/layout_search.h"
#include "trireme/plan/analytic/layout_timeline.h"
#include "trireme/plan/analytic/search_show.h"

namespace trireme::command {
namespace {

struct PlanVerbOptions {
  std::string model;
  std::string machine = "p4d";
  analytic::LayoutSearch search{.global_batch = 0};
  double num_samples = 0;
  double num_tokens = 0;
  double mtbf_hours = 0;           ///< Of a host; 0: failures are not asked about.
  std::int64_t device_memory = 0;  ///< Bytes; 0: the machine's.
  bool has_type = false;           ///< Given; else the devices' best.
  bool serves = false;
  int port = 0;
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

void check_length(const PlanVerbOptions& options, const analytic::ModelShape& shape) {
  if (options.num_samples > 0 && options.num_tokens > 0) {
    throw Error(ErrorKind::kInvalidArgument, "--samples and --tokens say the same; give one");
  }
  if (options.num_tokens > 0 && !shape.is_transformer()) {
    throw Error(ErrorKind::kInvalidArgument, shape.name + " has no tokens; give --samples");
  }
}

/// The named machine, with devices of the memory that is asked for.
analytic::Machine machine_of(const PlanVerbOptions& options) {
  analytic::Machine machine = analytic::machine(options.machine);
  if (options.device_memory > 0) {
    machine.accelerator.memory_bytes = static_cast<double>(options.device_memory);
  }
  return machine;
}

/// Calls `use` with what is found.
template <typename Use>
void with_layouts(PlanVerbOptions options, const Use& use) {
  const analytic::ModelShape& shape = analytic::model(options.model);
  check_length(options, shape);
  const analytic::Machine machine = machine_of(options);
  analytic::LayoutSearch& search = options.search;
  if (search.global_batch == 0) search.global_batch = usual_batch(options, machine);
  if (search.seq_len == 0) search.seq_len = shape.seq_len;
  if (!options.has_type && !machine.accelerator.has_bf16) {
    search.type = analytic::MatrixType::kF16;
  }
  const analytic::LayoutsFound found =
      analytic::search_layouts(shape, machine, analytic::usual_achieved(), search);
  analytic::ShownSearch shown{.shape = shape, .machine = machine, .search = search, .found = found};
  shown.num_samples = options.num_samples;
  shown.num_tokens = options.num_tokens;
  shown.goodput = goodput_of(options);
  analytic::add_published(analytic::usual_achieved(), shown);
  use(shown);
}

Json json_with_timeline(const PlanVerbOptions& options) {
  Json json;
  with_layouts(options, [&json](const analytic::ShownSearch& shown) {
    json = analytic::to_json(shown);
    const std::string& device = shown.machine.accelerator.name;
    json["batch"] = shown.search.global_batch;
    json["memory_bytes"] = shown.search.memory_part * shown.machine.accelerator.memory_bytes;
    json["timeline"] =
        analytic::pipeline_timeline(shown.shape, shown.machine, shown.found.best.front().layout,
                                    analytic::achieved_of(analytic::usual_achieved(), device));
  });
  return json;
}

std::int64_t number_of(const std::string& name, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  if (!is_number || number < 0 || number > analytic::kMostOfLayout) {
    throw Error(ErrorKind::kInvalidArgument,
                name + " is '" + text + "'; expected a whole number of at most 2^20");
  }
  return number;
}

/// With what the page's controls say in place of the options.
PlanVerbOptions with_values(PlanVerbOptions options,
                            const std::map<std::string, std::string>& values) {
  for (const auto& [name, text] : values) {
    if (name == "model") {
      options.model = text;
    } else if (name == "topology") {
      options.machine = text;
    } else if (name == "hosts") {
      options.search.num_hosts = number_of(name, text);
    } else if (name == "batch") {
      options.search.global_batch = number_of(name, text);
    } else if (name == "microbatch") {
      options.search.microbatch = number_of(name, text);
    } else if (name == "memory_gib") {
      options.device_memory = number_of(name, text) << 30;
    } else {
      throw Error(ErrorKind::kInvalidArgument,
                  "there is no '" + name +
                      "'; known are model, topology, hosts, batch, microbatch and memory_gib");
    }
  }
  return options;
}

Json choices_of(const PlanVerbOptions& options) {
  Json models = Json::array(), machines = Json::array();
  for (const analytic::ModelShape& one : analytic::models()) models.push_back(one.name);
  for (const analytic::Machine& one : analytic::machines()) {
    constexpr double kGiB = 1 << 30;
    machines.push_back({{"name", one.name},
                        {"device", one.accelerator.name},
                        {"devices", one.devices_per_host},
                        {"memory_gib", one.accelerator.memory_bytes / kGiB}});
  }
  return {{"models", models},
          {"machines", machines},
          {"model", options.model},
          {"topology", options.machine},
          {"hosts", options.search.num_hosts},
          {"batch", options.search.global_batch},
          {"microbatch", options.search.microbatch},
          {"memory_gib", options.device_memory >> 30}};
}

void serve(const PlanVerbOptions& options, const Context& context) {
  const PlanPage page{.choices = choices_of(options), .plan = [&options](const auto& values) {
                        return json_with_timeline(with_values(options, values));
                      }};
  serve_plan_page(page, options.port, [&context](const std::string& address) {
    print(context, {{"address", address}},
          "the page is at " + address + " (this machine only); Ctrl-C ends it\n");
    std::fflush(stdout);
  });
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

void add_limits(CLI::App& app, PlanVerbOptions& options) {
  app.add_option("--microbatch", options.search.microbatch,
                 "Samples of a microbatch; without it powers of two are tried")
      ->check(arguments::positive());
  app.add_option("--device-memory", options.device_memory,
                 "Memory of a device, `80GiB`; without it the machine's")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

void add_page(CLI::App& app, PlanVerbOptions& options) {
  app.add_flag("--serve", options.serves,
               "A page on this machine to try other hosts, batches and memories on");
  app.add_option("--port", options.port, "Of that page; without it any that is free")
      ->check(CLI::Range(1, 65535))
      ->needs("--serve");
}

}  // namespace

Body add_plan(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlanVerbOptions>();
  analytic::LayoutSearch& search = options->search;
  app.add_option("name", options->model,
                 "A model of publications: gpt3-175b, llama3-405b, t5-3b, ..")
      ->required();
  app.add_option(
         "--topology", options->machine,
         "Kind of the hosts: p3dn, p4d, p5, dgx_a100, dgx_h100, gb200_nvl72, gb300_nvl72, ..")
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
  add_limits(app, *options);
  add_page(app, *options);
  app.add_option("--most", search.most, "Layouts to print")
      ->check(arguments::positive())
      ->capture_default_str();
  app.footer(
      "Example: trireme plan gpt3-175b --topology p4d --hosts 120 --batch 1920\n"
      "Nothing runs: steps follow from published numbers of devices, and parts of them that "
      "published "
      "runs achieved (`trireme validate`).");
  return [options, &context, &app] {
    options->has_type = app.count("--type") > 0;
    if (options->serves) {
      serve(*options, context);
      return 0;
    }
    with_layouts(*options, [&context](const analytic::ShownSearch& shown) {
      print(context, analytic::to_json(shown), analytic::show(shown));
    });
    return 0;
  };
}

}  // namespace trireme::command
