// Reads a JSON list of objects from standard input; prints a JSON list of what is wrong with each, or null.
import { readFileSync } from "node:fs";
import { ExternalSecret } from "@kubernetes-models/external-secrets/external-secrets.io/v1";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";

const MODELS = { ExternalSecret, HTTPRoute };

function fault(object) {
  try {
    new MODELS[object.kind](object).validate();
    return null;
  } catch (error) {
    return error.message;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(fault)));
