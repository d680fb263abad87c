#include <fmt/format.h>

#include <string_view>

#include "trireme/command/run_files.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/checkpoint/checkpoint_reader.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/error.h"
#include "trireme/session/weights_file.h"

namespace trireme::command {
namespace {

struct ExportVerbOptions {
  std::string checkpoint;
  std::string out = "weights.safetensors";
  bool average = false;
};

/// Parameters and buffers under their registered names; what the optimizer keeps is left out, but for averages in the
/// place of the parameters that were updated, where they are asked for. kInvalidArgument where there are none.
train::Tensors weights_of(checkpoint::Reader& reader, bool average) {
  const std::string averages = std::string("optimizer/") + parameters::Optimizer::kAverage + "/";
  train::Tensors result;
  bool found = false;
  for (const auto& [key, entry] : reader.index().contents.tensors) {
    for (const std::string_view kind : {"parameters/", "buffers/"}) {
      if (key.starts_with(kind)) result.try_emplace(key.substr(kind.size()), reader.read(key));
    }
    if (average && key.starts_with(averages)) {
      result.insert_or_assign(key.substr(averages.size()), reader.read(key));
      found = true;
    }
  }
  if (average && !found) {
    throw Error(ErrorKind::kInvalidArgument,
                "the checkpoint has no averages of weights; train with --average-decay 0.999");
  }
  return result;
}

}  // namespace

Body add_export(CLI::App& app, Context& context) {
  auto options = std::make_shared<ExportVerbOptions>();
  app.add_option("checkpoint", options->checkpoint,
                 "Folder `step-N`, or a run: its newest checkpoint")
      ->required();
  app.add_option("--out", options->out, "Where the weights are written")->capture_default_str();
  app.add_flag("--average", options->average,
               "The exponential moving averages of the weights in their place");
  app.footer("Example: trireme export run --out weights.safetensors");
  return [options, &context] {
    checkpoint::Reader reader(checkpoint_at(options->checkpoint));
    const train::Tensors weights = weights_of(reader, options->average);
    session::save_weights(weights, options->out);
    print(context,
          {{"file", options->out}, {"step", reader.index().step}, {"tensors", weights.size()}},
          fmt::format("{} tensors after {} steps written to {}\n", weights.size(),
                      reader.index().step, options->out));
    return 0;
  };
}

}  // namespace trireme::command
