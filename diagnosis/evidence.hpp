#pragma once

#include "diagnosis/patient.hpp"
#include "diagnosis/trace.hpp"
#include "diagnosis/verdict.hpp"

namespace infernex::diagnosis {

/// What a verdict on `key` rests on, and what would have helped and was not measured: into `into`. `offset`: what turns
/// the receiver's milliseconds into those of the node's clock.
void add_grounds(const patient& from, const trace* curves, const condition_key& key, millis offset, millis now,
                 verdict& into);

}  // namespace infernex::diagnosis
