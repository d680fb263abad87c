#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/model.h"

/// Metrics of an evaluation, for Workload::metrics; names, parameters and results are those of `trireme.metrics` in Python.
///
///     workload.metrics = [] {
///       return trireme::metrics::together(trireme::metrics::accuracy(), trireme::metrics::top_k_accuracy(5));
///     };
///
/// Each reads outputs of the forward by the names in its options, and reports by `name`: no two may report one name.
///
/// Errors   kInvalidArgument from `add`, with the output's name, where there is none of that name, shapes or types do not fit,
///          or a value is out of range. A result that is not defined is NaN, which ends the evaluation with a message.
/// Library  accuracy, top_k_accuracy and perplexity are in libtrireme; the others in the pack's that each names.
namespace trireme::metrics {

/// What Workload::metrics returns, of several.
template <std::same_as<std::unique_ptr<Metric>>... Metrics>
std::vector<std::unique_ptr<Metric>> together(Metrics... metrics) {
  std::vector<std::unique_ptr<Metric>> all;
  (all.push_back(std::move(metrics)), ...);
  return all;
}

/// Whether each label is among the k highest scores, bool [samples, ..]; of equal scores the first count, as torch.argmax has
/// it, and one that is NaN is above all others. Operators of torch alone, so a forward may report its mean (`metric`), also in
/// training.
///
/// scores   [samples, .., classes].
/// labels   i64 [samples, ..] of 0 to classes - 1.
at::Tensor is_among_first(const at::Tensor& scores, const at::Tensor& labels, std::int64_t k);

struct AccuracyOptions {
  std::string scores = "scores";
  std::string labels = "labels";
  /// Of two classes, 0 and 1, or of several such labels a sample: a score above it says 1, else 0. 0.5 of probabilities, 0 of
  /// scores before a sigmoid.
  std::optional<double> threshold;
  std::int64_t ignore_index = -100;  ///< Labels of this value are not counted.
  std::string name = "accuracy";
};

/// The share of labels that have the highest score; of equal scores the first counts.
///
/// scores   [samples, .., classes], before or after a softmax; or of labels that are predicted, integers [samples, ..]; or,
///          with `threshold`, [samples, ..], one number for each label. None is NaN.
/// labels   [samples, ..], whole numbers or bool: 0 to classes - 1.
/// Results  `name`; NaN without labels.
std::unique_ptr<Metric> accuracy(AccuracyOptions options = {});

struct TopKAccuracyOptions {
  std::string scores = "scores";
  std::string labels = "labels";
  std::int64_t ignore_index = -100;
  std::string name;  ///< Empty: `top5_accuracy`.
};

/// The share of labels that are among the k highest scores; of equal scores the first count.
///
/// k        1 to classes - 1.
/// scores   [samples, .., classes]; labels as of `accuracy`.
/// Results  `name`; NaN without labels.
std::unique_ptr<Metric> top_k_accuracy(std::int64_t k, TopKAccuracyOptions options = {});

struct PerplexityOptions {
  std::string scores = "scores";
  std::string labels = "labels";
  /// In place of scores, [samples, tokens]: the cross entropy of each token.
  std::string losses;
  std::int64_t ignore_index = -100;
  std::string name = "perplexity";
};

/// exp of the mean cross entropy of all tokens, whatever the samples' lengths. Logarithms and sums are f64.
///
/// scores   [samples, tokens, vocabulary], before the softmax. They travel to rank 0: of a large vocabulary give `losses`.
/// labels   integers [samples, tokens].
/// Results  `name`; NaN without tokens, infinity from a mean of 709.8 on.
/// Source   Jelinek et al., "Perplexity - a measure of the difficulty of speech recognition tasks", 1977.
std::unique_ptr<Metric> perplexity(PerplexityOptions options = {});

struct RocAucOptions {
  std::string scores = "scores";
  std::string labels = "labels";
  std::string name = "AUC";
};

/// The share of pairs of a positive and a negative in which the positive has the higher score; ties count one half. Exact.
/// In libtrireme_ranking.
///
/// scores   floats [samples] or [samples, labels]; any that rise with the probability will do.
/// labels   of that shape: 0 and 1, or bool.
/// Results  `name`, of several labels a sample the mean over them (macro).
/// Errors   also kInvalidArgument from `results` where a score is NaN or a class has no sample.
/// Cost     5 bytes a sample and label, of f64 9, until the evaluation ends; then a sort.
std::unique_ptr<Metric> roc_auc(RocAucOptions options = {});

struct LogLossOptions {
  std::string probabilities = "probabilities";
  std::string labels = "labels";
  std::string name = "log_loss";
};

/// The mean cross entropy in nats, probabilities clipped by their type's epsilon, as scikit-learn's. Logarithms and sums are
/// f64. In libtrireme_ranking.
///
/// probabilities   [samples], those of class 1 of two; or [samples, classes], rows of sum 1. After a sigmoid or a softmax.
/// labels          [samples]: 0 and 1 or bool, or 0 to classes - 1.
/// Results         `name`; NaN without samples.
std::unique_ptr<Metric> log_loss(LogLossOptions options = {});

struct WordErrorRateOptions {
  std::string hypotheses = "hypotheses";
  std::string references = "references";
  std::optional<std::int64_t> padding;  ///< Numbers of this value are left out before `decode`.
  /// Of a substitution, a deletion, an insertion; the cheapest alignment is counted. sclite's are 4, 3, 3.
  std::array<std::int32_t, 3> costs = {1, 1, 1};
  bool ignores_case = false;  ///< Of ASCII letters.
  std::string name = "WER";
};

/// The text of a sample's numbers, as a tokenizer has it.
using Decode = std::function<std::string(const std::vector<std::int64_t>& numbers)>;

/// Substitutions, deletions and insertions over the words of all references. Words end at ASCII white space. In
/// libtrireme_speech.
///
/// hypotheses, references   integers [samples, length]; lengths may differ.
/// Results  `name`; it may exceed 1. 0 without words and errors; infinity for errors without words, which ends the evaluation.
/// Cost     words of a reference times words of its hypothesis.
std::unique_ptr<Metric> word_error_rate(Decode decode, WordErrorRateOptions options = {});

struct DiceOptions {
  std::string predictions = "predictions";
  std::string labels = "labels";
  std::int64_t first_class = 1;  ///< The first that counts: 1 leaves background out, 0 does not.
  /// Added to numerator and denominator; MLPerf's is 1e-6. Without it a class that is in neither has no Dice, and means leave
  /// it out.
  double smoothing = 0;
  /// Of the classes from `first_class` on: their means over cases are reported too, that of a class in no case is left out.
  std::vector<std::string> class_names;
  std::string name = "Dice";
};

/// Of each sample (case) and class the overlap 2 |P and T| / (|P| + |T|) of the voxels P that are predicted and the true ones
/// T; the mean over a case's classes, then over cases. In libtrireme_volume.
///
/// num_classes          with background, 0.
/// predictions, labels  integers or bool, [samples, depth, height, width] or [samples, height, width], as `scores.argmax(1)`
///                      gives them.
/// Results  `name`, NaN where no case has any class; `name kidney` of each class of class_names.
/// Errors   also kInvalidArgument at once for first_class or class_names that do not fit.
/// Source   Dice, "Measures of the amount of ecologic association between species", 1945.
std::unique_ptr<Metric> dice(std::int64_t num_classes, DiceOptions options = {});

struct AveragePrecisionOptions {
  /// A COCO file, of whose images those count that come. Empty: what is there comes as outputs, too.
  std::filesystem::path truth;
  /// File for all that is found, as COCO's evaluations read it (`trireme-evaluate coco`, pycocotools). Empty: none.
  std::filesystem::path found;
  std::string boxes = "boxes";
  std::string scores = "scores";
  std::string labels = "labels";
  std::string images = "image_ids";         ///< With `truth`.
  std::string true_boxes = "true_boxes";    ///< Without it, as `boxes`;
  std::string true_labels = "true_labels";  ///< areas are those of the boxes, and none is a crowd.
  std::string masks;                        ///< Not empty: masks are compared, too.
  std::string true_masks = "true_masks";    ///< Without `truth`; areas are then those of the masks.
  std::filesystem::path found_masks;        ///< As `found`, of masks alone. Empty: none.
  std::string prefix;                       ///< Of the results' names, where there are several.
};

/// COCO's twelve figures of the boxes, and of the masks, that are found on images, those of pycocotools bit for bit. In
/// libtrireme_vision.
///
/// boxes    [samples, objects, 4]: x1, y1, x2, y2 in pixels of the truth.
/// scores   [samples, objects].
/// labels   integers [samples, objects], the truth's category ids; -1 or less where an image has no more objects. Others that
///          are no category of the truth are left out, as pycocotools has it.
/// images   integers [samples].
/// masks    of each object one of: bool [samples, objects, height, width], the pixels of its image, those beyond a smaller
///          image false; floats [samples, objects, side, side], a soft mask of its box, of at most 4096 a side, pasted as
///          torchvision's `paste_masks_in_image` does and cut at 0.5; or integers [samples, objects, runs], COCO's counts: pixels
///          that are 0 and 1 in turn, column after column, -1 behind the last.
/// true_masks   bool [samples, objects, height, width]: all images are of that size.
/// Results  AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1 where no box is of that size. With `masks` the
///          same of these, `mask AP` and so on; what is found goes into a range of sizes by the mask's area, as pycocotools has it
///          of results without boxes.
/// Errors   also kInvalidArgument where a true box or mask has no area, a number is not finite, a mask does not fit its image, or
///          an image comes twice or is not in `truth`; kCorruptData and kIo for the file, with masks also where an annotation has
///          none.
std::unique_ptr<Metric> average_precision(AveragePrecisionOptions options = {});

}  // namespace trireme::metrics
