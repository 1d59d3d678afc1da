import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

const asText = "Untrusted text is shown as text: React escapes it.";

export default ts.config(
  { ignores: ["dist", "node_modules", "src/api/schema.ts"] },
  ...ts.configs.strict,
  hooks.configs.flat.recommended,
  {
    rules: {
      eqeqeq: "error",
      "no-console": "error",
      "no-eval": "error",
      "no-new-func": "error",
      "max-lines": ["error", 350],
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: asText },
        { selector: "Property[key.name='dangerouslySetInnerHTML']", message: asText },
        { selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|srcdoc)$/]", message: asText },
        { selector: "CallExpression[callee.object.name='document'][callee.property.name=/^write/]", message: asText },
      ],
      // The virtualizer's functions may not be memoised, and the compiler that would is not used here.
      "react-hooks/incompatible-library": "off",
    },
  },
  { files: ["scripts/**"], rules: { "no-console": "off" } },
);
