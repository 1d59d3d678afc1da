import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import { gatewayUrl } from "./api";

SwaggerUI({ url: gatewayUrl("/openapi.json"), dom_id: "#docs", deepLinking: true, validatorUrl: null });
