// What make check wants of the browser's scripts beyond their types and their format.

import js from "@eslint/js";

export default [
  {
    files: ["**/*.js"],
    languageOptions: {ecmaVersion: "latest", sourceType: "module"},
    linterOptions: {reportUnusedDisableDirectives: "error"},
    rules: {
      ...js.configs.recommended.rules,
      "no-undef": "off", // the types say which names there are, in the browser and in Node
      "array-callback-return": "error",
      "consistent-return": "error",
      "default-case-last": "error",
      eqeqeq: ["error", "always", {null: "ignore"}],
      "no-constructor-return": "error",
      "no-duplicate-imports": "error",
      "no-else-return": "error",
      "no-implicit-coercion": "error",
      "no-param-reassign": "error",
      "no-return-assign": ["error", "except-parens"],
      "no-self-compare": "error",
      "no-sequences": "error",
      "no-shadow": ["error", {allow: ["name", "window"]}],
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unmodified-loop-condition": "error",
      "no-unused-expressions": "error",
      "no-use-before-define": ["error", {functions: false, variables: false}],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "max-lines": ["error", {max: 300}],
      "max-lines-per-function": ["error", {max: 60}],
    },
  },
];
