// ddprun/plugin/classifier.hpp: what models that classify share: cross entropy, and the highest score as the answer.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "ddprun/plugin/model_plugin.hpp"

namespace ddprun {

// Its forward returns scores before softmax, [batch, classes] float; its target is [batch] int64, the right classes.
class Classifier : public Model {
 public:
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::nn::functional::cross_entropy(output, target);
  }

  torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target) override {
    return output.argmax(1).eq(target).sum();
  }

 protected:
  // Classes of the data set. Throws std::invalid_argument, naming the model, when there are fewer than two.
  static int64_t classes_of(const ModelContext& context, const std::string& model) {
    if (context.classes >= 2) return context.classes;
    throw std::invalid_argument(model + " is a classifier and needs at least two classes, but the data set has " +
                                std::to_string(context.classes) + (context.classes == 1 ? " class" : " classes") +
                                "; choose a data set with labels");
  }
};

}  // namespace ddprun
