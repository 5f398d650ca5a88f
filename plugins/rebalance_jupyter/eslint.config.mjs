import js from "@eslint/js";

// Modules that compute. They run without a page.
const PURE = ["address", "clock", "colours", "lens", "painting", "quiet", "stops", "text", "ticks", "trace", "worked"].map((name) => `src/${name}.js`);

export default [
  { ignores: ["static/"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off", // tsc knows the names of the browser
      "array-callback-return": "error",
      complexity: ["error", 15], // 12 in the Python code; here `?.` and `??` count, too
      "consistent-return": "error",
      eqeqeq: ["error", "always", { null: "ignore" }], // null and undefined are both "not known"
      "max-lines": ["error", 500],
      "no-constructor-return": "error",
      "no-implicit-coercion": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": "error",
      "no-restricted-syntax": ["error", {
        selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]",
        message: "Names in a trace are text, not HTML: use html() and svg().",
      }],
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-unreachable-loop": "error",
      "no-unused-vars": "error",
      "no-use-before-define": ["error", { functions: false }],
      "no-var": "error",
      "prefer-const": "error",
      radix: "error",
    },
  },
  { files: PURE, rules: { "no-restricted-globals": ["error", "document", "window"] } },
];
