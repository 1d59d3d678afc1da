export { api, gatewayUrl, plain, send, type Call, type Schema } from "./client";
export { ApiError, asApiError, errorIn } from "./errors";
export { apiKey, onApiKey, setApiKey } from "./key";
export { eventsOf, type ServerEvent } from "./sse";
